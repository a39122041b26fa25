//! Calls to the members of the cluster: which member is asked, for how long, and as which user.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

use agentcfg_core::sync::{lock, read_lock, write_lock};
use prost::Message;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::error::{CallFailure, ConnectError, Refusal, classify, has_no_leader, is_out_of_space};
use super::options::EtcdOptions;
use super::protocol::{
    AuthenticateRequest, AuthenticateResponse, Headed, LeaseKeepAliveResponse, LeaseRequest, StatusRequest,
    StatusResponse, TxnRequest, TxnResponse, path,
};

/// How long one member may take to answer a small request. A member that is stopped or cut off answers nothing at all,
/// so the next one is asked after this time.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1500);
/// The pause after each member was asked without a result.
const PAUSE: Duration = Duration::from_millis(50);

/// How long the cluster may fail before reads are refused without further attempts. The members elect a leader in one or
/// two seconds.
pub(super) const ELECTION: Duration = Duration::from_millis(2500);

/// The connections to the members. One of them is in use until it fails.
pub(super) struct Client {
    members: Vec<Member>,
    current: AtomicUsize,
    /// Since when no call has been answered, while calls fail.
    failing_since: Mutex<Option<Instant>>,
    /// The identifier of the cluster, 0 before the first answer.
    cluster: AtomicU64,
    user: Option<(String, String)>,
    token: RwLock<Option<Token>>,
    /// Held while a token is got, so that the calls which wait for it ask once.
    signing_in: tokio::sync::Mutex<()>,
}

type Token = MetadataValue<Ascii>;

/// A member, and the connection to it.
struct Member {
    endpoint: Endpoint,
    connection: Mutex<Connection>,
}

#[derive(Clone)]
struct Connection {
    channel: Channel,
    /// How many connections there were before.
    number: u64,
}

impl Member {
    fn new(endpoint: Endpoint) -> Self {
        let connection = Connection {
            channel: endpoint.connect_lazy(),
            number: 0,
        };
        Self {
            endpoint,
            connection: Mutex::new(connection),
        }
    }

    fn connection(&self) -> Connection {
        lock(&self.connection).clone()
    }

    /// Uses another connection from now on, unless another call has replaced this one already. A network that was cut
    /// can leave a connection behind that passes nothing for many minutes, though the member can be reached again.
    fn replace(&self, number: u64) {
        let mut connection = lock(&self.connection);
        if connection.number == number {
            *connection = Connection {
                channel: self.endpoint.connect_lazy(),
                number: number + 1,
            };
        }
    }
}

impl Client {
    pub(super) fn new(options: &EtcdOptions) -> Result<Self, ConnectError> {
        Ok(Self {
            members: options.members()?.into_iter().map(Member::new).collect(),
            current: AtomicUsize::new(0),
            failing_since: Mutex::default(),
            cluster: AtomicU64::new(0),
            user: options.user.clone(),
            token: RwLock::default(),
            signing_in: tokio::sync::Mutex::default(),
        })
    }

    /// The member in use.
    pub(super) fn member(&self) -> usize {
        self.current.load(Ordering::Relaxed) % self.members.len()
    }

    /// Uses the next member, unless another call has switched already.
    pub(super) fn switch_from(&self, member: usize) {
        let next = (member + 1) % self.members.len();
        // It fails when another call has switched.
        let _ = self
            .current
            .compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Makes a call that can be repeated, on one member after another until one answers or the deadline has passed.
    pub(super) async fn repeat<Q, A>(
        &self,
        path: &'static str,
        request: &Q,
        deadline: Instant,
    ) -> Result<A, CallFailure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + Headed + 'static,
    {
        self.repeat_for(Duration::MAX, path, request, deadline).await
    }

    /// As [`Self::repeat`], but once the cluster has failed for longer than this, each member is asked once.
    pub(super) async fn repeat_for<Q, A>(
        &self,
        longest_failure: Duration,
        path: &'static str,
        request: &Q,
        deadline: Instant,
    ) -> Result<A, CallFailure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + Headed + 'static,
    {
        let mut asked = 0;
        loop {
            let (member, begun) = (self.member(), Instant::now());
            let mut limit = answer_timeout(request);
            if self.failing(begun) > longest_failure {
                limit = limit.min(ANSWER_TIMEOUT / 3);
            }
            let why = match self.call(member, path, request, limit).await {
                // Every member would answer the same.
                Err(CallFailure::Unknown(why)) if is_out_of_space(&why) => return Err(CallFailure::Unknown(why)),
                Err(CallFailure::NotExecuted(why) | CallFailure::Unknown(why)) => why,
                answered => {
                    *lock(&self.failing_since) = None;
                    return answered;
                }
            };
            tracing::debug!(member, why, path, "a member of the etcd cluster did not answer");
            lock(&self.failing_since).get_or_insert(begun);
            self.switch_from(member);
            asked += 1;
            let has_asked_all = asked % self.members.len() == 0;
            let now = Instant::now();
            if now >= deadline || (has_asked_all && self.failing(now) > longest_failure) {
                return Err(CallFailure::NotExecuted(format!(
                    "no member of the etcd cluster answers: {why}"
                )));
            }
            if has_asked_all {
                sleep(PAUSE).await;
            }
        }
    }

    /// For how long no call has been answered, while calls fail.
    fn failing(&self, now: Instant) -> Duration {
        let since = *lock(&self.failing_since);
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// What each member answers by itself, for the message of a cluster that cannot be used.
    pub(super) async fn survey(&self) -> String {
        const LIMIT: Duration = Duration::from_secs(1);
        let mut found = Vec::with_capacity(self.members.len());
        for (number, member) in self.members.iter().enumerate() {
            let status = self
                .call::<_, StatusResponse>(number, path::STATUS, &StatusRequest::default(), LIMIT)
                .await;
            let says = match status.map_err(CallFailure::into_text) {
                Ok(_) => "answers".to_owned(),
                Err(why) if has_no_leader(&why) => "knows no leader, which takes a majority of the members".to_owned(),
                Err(why) => format!("does not answer ({why})"),
            };
            found.push(format!("{} {says}", member.endpoint.uri()));
        }
        found.join(", ")
    }

    /// Runs a transaction that only reads.
    pub(super) async fn read(&self, txn: &TxnRequest, deadline: Instant) -> Result<TxnResponse, CallFailure> {
        self.repeat_for(ELECTION, path::TXN, txn, deadline).await
    }

    /// Makes one call on one member. A token that is refused is replaced until the deadline, because the refusal proves
    /// that nothing was executed: the next one is outdated as well when users and roles change meanwhile.
    pub(super) async fn call<Q, A>(
        &self,
        member: usize,
        path: &'static str,
        request: &Q,
        limit: Duration,
    ) -> Result<A, CallFailure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + Headed + 'static,
    {
        let deadline = Instant::now() + limit;
        loop {
            let token = match (&self.user, self.token()) {
                (Some(user), None) => Some(self.sign_in(member, user, None, deadline).await?),
                (_, token) => token,
            };
            let outcome = self.call_once(member, path, request, token.clone(), deadline).await;
            match (&self.user, outcome) {
                (Some(user), Err(CallFailure::Refused(Refusal::TokenExpired))) if Instant::now() < deadline => {
                    self.sign_in(member, user, token, deadline).await?;
                }
                (_, outcome) => return outcome,
            }
        }
    }

    fn token(&self) -> Option<Token> {
        read_lock(&self.token).clone()
    }

    /// Gets a token in place of one that was refused, unless another call has got one meanwhile.
    async fn sign_in(
        &self,
        member: usize,
        (name, password): &(String, String),
        refused: Option<Token>,
        deadline: Instant,
    ) -> Result<Token, CallFailure> {
        let Ok(_alone) = timeout_at(deadline, self.signing_in.lock()).await else {
            return Err(CallFailure::NotExecuted("the cluster gave no token in time".into()));
        };
        if let Some(token) = self.token().filter(|token| Some(token) != refused.as_ref()) {
            return Ok(token);
        }
        let request = AuthenticateRequest {
            name: name.clone(),
            password: password.clone(),
        };
        let answer = self
            .call_once(member, path::AUTHENTICATE, &request, None, deadline)
            .await;
        let answer: AuthenticateResponse = answer.map_err(|failure| match failure {
            // The call that needs the token was not sent.
            CallFailure::Unknown(why) => CallFailure::NotExecuted(why),
            other => other,
        })?;
        let token: Token = answer.token.parse().map_err(|_| {
            CallFailure::Refused(Refusal::Other(
                "the cluster gave a token that is no header value".into(),
            ))
        })?;
        *write_lock(&self.token) = Some(token.clone());
        Ok(token)
    }

    fn request<Q>(message: Q, token: Option<Token>) -> Request<Q> {
        let mut request = Request::new(message);
        // A member that knows no leader refuses the call at once instead of waiting for one.
        request
            .metadata_mut()
            .insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = token {
            request.metadata_mut().insert("token", token);
        }
        request
    }

    async fn call_once<Q, A>(
        &self,
        member: usize,
        path: &'static str,
        message: &Q,
        token: Option<Token>,
        deadline: Instant,
    ) -> Result<A, CallFailure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + Headed + 'static,
    {
        let connection = self.members[member].connection();
        let mut grpc = Grpc::new(connection.channel).max_decoding_message_size(usize::MAX);
        let ready = timeout_at(deadline, grpc.ready()).await;
        match ready {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(CallFailure::NotExecuted(error.to_string())),
            Err(_) => {
                self.members[member].replace(connection.number);
                return Err(CallFailure::NotExecuted(
                    "the member does not accept a connection".into(),
                ));
            }
        }
        let request = Self::request(message.clone(), token);
        let call = grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, A>::default());
        match timeout_at(deadline, call).await {
            Ok(Ok(answer)) => {
                let answer = answer.into_inner();
                self.require_same(answer.cluster())?;
                Ok(answer)
            }
            Ok(Err(status)) => Err(classify(&status)),
            Err(_) => {
                self.members[member].replace(connection.number);
                Err(CallFailure::Unknown("the member did not answer in time".into()))
            }
        }
    }

    /// Refuses the answers of another cluster than the first one, such as one that was restored from a snapshot: there
    /// the revisions that this process knows belong to other changes.
    fn require_same(&self, cluster: Option<u64>) -> Result<(), CallFailure> {
        let Some(cluster) = cluster.filter(|cluster| *cluster != 0) else {
            return Ok(());
        };
        let known = self
            .cluster
            .compare_exchange(0, cluster, Ordering::Relaxed, Ordering::Relaxed);
        match known {
            Err(known) if known != cluster => Err(CallFailure::Refused(Refusal::OtherCluster)),
            _ => Ok(()),
        }
    }

    /// Extends a lease; returns the seconds that it has, 0 when it does not exist.
    pub(super) async fn keep_alive(&self, lease: i64) -> Result<i64, CallFailure> {
        let member = self.member();
        let connection = self.members[member].connection();
        let mut grpc = Grpc::new(connection.channel);
        let call = async {
            grpc.ready()
                .await
                .map_err(|error| Status::unavailable(error.to_string()))?;
            let request = Self::request(LeaseRequest { id: lease }, self.token());
            let codec = ProstCodec::<LeaseRequest, LeaseKeepAliveResponse>::default();
            let path = PathAndQuery::from_static(path::LEASE_KEEP_ALIVE);
            let answers = grpc.server_streaming(request, path, codec).await?;
            answers.into_inner().message().await
        };
        match timeout(ANSWER_TIMEOUT, call).await {
            Ok(Ok(answer)) => Ok(answer.map_or(0, |answer| answer.ttl)),
            Ok(Err(status)) => {
                self.switch_from(member);
                Err(classify(&status))
            }
            Err(_) => {
                self.members[member].replace(connection.number);
                self.switch_from(member);
                Err(CallFailure::Unknown("the member did not answer in time".into()))
            }
        }
    }
}

/// How long one member may take to answer a request of this size.
pub(super) fn answer_timeout(request: &impl Message) -> Duration {
    const PER_MIB: Duration = Duration::from_millis(500);
    let mib = u32::try_from(request.encoded_len() >> 20).unwrap_or(u32::MAX);
    ANSWER_TIMEOUT + PER_MIB.saturating_mul(mib)
}
