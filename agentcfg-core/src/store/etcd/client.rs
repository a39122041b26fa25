//! Calls to the members of the cluster: which member is asked, for how long, and as which user.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::error::{ConnectError, Failure, Refusal, classify};
use super::options::EtcdOptions;
use super::wire::{
    AuthenticateRequest, AuthenticateResponse, LeaseKeepAliveResponse, LeaseRequest, TxnRequest, TxnResponse, path,
};

/// How long one member may take to answer a small request. A member that is stopped or cut off answers nothing at all, so the
/// next one is asked after this time.
const PATIENCE: Duration = Duration::from_millis(1500);
/// The pause after each member was asked without a result.
const PAUSE: Duration = Duration::from_millis(50);

/// The connections to the members. One of them is in use until it fails.
pub(super) struct Client {
    members: Vec<Channel>,
    current: AtomicUsize,
    user: Option<(String, String)>,
    token: RwLock<Option<MetadataValue<Ascii>>>,
}

impl Client {
    pub(super) fn new(options: &EtcdOptions) -> Result<Self, ConnectError> {
        let members = options.members()?;
        Ok(Self {
            members: members.iter().map(|endpoint| endpoint.connect_lazy()).collect(),
            current: AtomicUsize::new(0),
            user: options.user.clone(),
            token: RwLock::default(),
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
    pub(super) async fn repeat<Q, A>(&self, path: &'static str, request: &Q, deadline: Instant) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut asked = 0;
        loop {
            let member = self.member();
            let why = match self.call(member, path, request, patience(request)).await {
                Err(Failure::NotExecuted(why) | Failure::Unknown(why)) => why,
                answered => return answered,
            };
            tracing::debug!(member, why, path, "a member of the etcd cluster did not answer");
            self.switch_from(member);
            asked += 1;
            if asked % self.members.len() == 0 {
                sleep(PAUSE).await;
            }
            if Instant::now() >= deadline {
                return Err(Failure::NotExecuted(format!(
                    "no member of the etcd cluster answers: {why}"
                )));
            }
        }
    }

    /// Runs a transaction that only reads.
    pub(super) async fn read(&self, txn: &TxnRequest, deadline: Instant) -> Result<TxnResponse, Failure> {
        self.repeat(path::TXN, txn, deadline).await
    }

    /// Makes one call on one member. A token that has expired is replaced, because that proves that nothing was executed.
    pub(super) async fn call<Q, A>(
        &self,
        member: usize,
        path: &'static str,
        request: &Q,
        limit: Duration,
    ) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let deadline = Instant::now() + limit;
        if self.user.is_some() && self.token().is_none() {
            self.sign_in(member, deadline).await?;
        }
        match self.call_once(member, path, request, deadline).await {
            Err(Failure::Refused(Refusal::TokenExpired)) if self.user.is_some() => {
                self.sign_in(member, deadline).await?;
                self.call_once(member, path, request, deadline).await
            }
            outcome => outcome,
        }
    }

    fn token(&self) -> Option<MetadataValue<Ascii>> {
        self.token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn sign_in(&self, member: usize, deadline: Instant) -> Result<(), Failure> {
        let Some((name, password)) = self.user.clone() else {
            return Ok(());
        };
        let request = AuthenticateRequest { name, password };
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = None;
        let answer = self.call_once(member, path::AUTHENTICATE, &request, deadline).await;
        let answer: AuthenticateResponse = answer.map_err(|failure| match failure {
            // The call that needs the token was not sent.
            Failure::Unknown(why) => Failure::NotExecuted(why),
            other => other,
        })?;
        let token = answer.token.parse().map_err(|_| {
            Failure::Refused(Refusal::Other(
                "the cluster gave a token that is no header value".into(),
            ))
        })?;
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(())
    }

    fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        // A member that knows no leader refuses the call at once instead of waiting for one.
        request
            .metadata_mut()
            .insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = self.token() {
            request.metadata_mut().insert("token", token);
        }
        request
    }

    async fn call_once<Q, A>(
        &self,
        member: usize,
        path: &'static str,
        message: &Q,
        deadline: Instant,
    ) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.members[member].clone()).max_decoding_message_size(usize::MAX);
        let ready = timeout_at(deadline, grpc.ready()).await;
        match ready {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(Failure::NotExecuted(error.to_string())),
            Err(_) => return Err(Failure::NotExecuted("the member does not accept a connection".into())),
        }
        let request = self.request(message.clone());
        let call = grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, A>::default());
        match timeout_at(deadline, call).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(classify(&status)),
            Err(_) => Err(Failure::Unknown("the member did not answer in time".into())),
        }
    }

    /// Extends a lease; returns the seconds that it has, 0 when it does not exist.
    pub(super) async fn keep_alive(&self, lease: i64) -> Result<i64, Failure> {
        let member = self.member();
        let mut grpc = Grpc::new(self.members[member].clone());
        let call = async {
            grpc.ready()
                .await
                .map_err(|error| Status::unavailable(error.to_string()))?;
            let request = self.request(LeaseRequest { id: lease });
            let codec = ProstCodec::<LeaseRequest, LeaseKeepAliveResponse>::default();
            let path = PathAndQuery::from_static(path::LEASE_KEEP_ALIVE);
            let answers = grpc.server_streaming(request, path, codec).await?;
            answers.into_inner().message().await
        };
        match timeout(PATIENCE, call).await {
            Ok(Ok(answer)) => Ok(answer.map_or(0, |answer| answer.ttl)),
            Ok(Err(status)) => {
                self.switch_from(member);
                Err(classify(&status))
            }
            Err(_) => {
                self.switch_from(member);
                Err(Failure::Unknown("the member did not answer in time".into()))
            }
        }
    }
}

/// How long one member may take to answer a request of this size.
pub(super) fn patience(request: &impl Message) -> Duration {
    const PER_MIB: Duration = Duration::from_millis(500);
    let mib = u32::try_from(request.encoded_len() >> 20).unwrap_or(u32::MAX);
    PATIENCE + PER_MIB.saturating_mul(mib)
}
