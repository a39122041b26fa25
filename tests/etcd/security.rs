//! A cluster that asks its clients for a certificate and for a user.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_core::store::{Batch, Key, Kind, Store, Write, conformance};
use agentcfg_etcd::{EtcdOptions, EtcdStore};
use agentcfg_tests::harness::{certificate, not_run, run_end_to_end_suite};
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::load::Load;
use crate::server::{Server, token};

const USER: &str = "agentcfg";
const PASSWORD: &str = "canary-password";

/// A cluster with TLS, client certificates and users.
struct Secured {
    cluster: Cluster,
    place: TempDir,
}

impl Secured {
    #[track_caller]
    fn start(settings: &[&str]) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let made = |name: &str, authority, extensions: &[&str]| certificate(place.path(), name, authority, extensions);
        let both = ["subjectAltName=IP:127.0.0.1", "extendedKeyUsage=serverAuth,clientAuth"];
        let leaf = "basicConstraints=critical,CA:FALSE";
        let all = made("authority", None, &[])
            && made("foreign", None, &[])
            && made("member", Some("authority"), &[&both[..], &[leaf]].concat())
            && made("client", Some("authority"), &["extendedKeyUsage=clientAuth", leaf])
            && made("stranger", Some("foreign"), &["extendedKeyUsage=clientAuth", leaf]);
        if !all {
            not_run("openssl is missing (apt-get install openssl)");
            return None;
        }
        let file = |name: &str| place.path().join(name).display().to_string();
        let [authority, member, key] = ["authority.crt", "member.crt", "member.key"].map(file);
        let (client, client_key) = (file("client.crt"), file("client.key"));
        let own = [
            "--client-cert-auth",
            "--trusted-ca-file",
            &authority,
            "--cert-file",
            &member,
            "--key-file",
            &key,
            // It is for tests.
            "--bcrypt-cost=4",
        ];
        let credentials = ["--cacert", &authority, "--cert", &client, "--key", &client_key];
        let cluster = Cluster::with_tls(&[&own, settings].concat(), &credentials)?;
        for steps in [
            &["user", "add", "root:root"][..],
            &["user", "grant-role", "root", "root"],
            &["user", "add", &format!("{USER}:{PASSWORD}")],
            &["role", "add", "agentcfg"],
            &[
                "role",
                "grant-permission",
                "agentcfg",
                "--prefix=true",
                "readwrite",
                "test-",
            ],
            &[
                "role",
                "grant-permission",
                "agentcfg",
                "--prefix=true",
                "readwrite",
                "it_",
            ],
            &["user", "grant-role", USER, "agentcfg"],
            &["user", "add", "other:other"],
            &["role", "add", "other"],
            &[
                "role",
                "grant-permission",
                "other",
                "--prefix=true",
                "readwrite",
                "other/",
            ],
            &["user", "grant-role", "other", "other"],
            &["auth", "enable"],
        ] {
            cluster.ctl(steps);
        }
        cluster.use_credentials(&[&credentials[..], &["--user", "root:root"]].concat());
        Some(Self { cluster, place })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// The options of a new store.
    fn options(&self) -> EtcdOptions {
        self.cluster
            .options()
            .user(Some((USER.into(), PASSWORD.into())))
            .tls_ca(self.file("authority.crt"))
            .tls_identity((self.file("client.crt"), self.file("client.key")))
    }

    /// The settings of a server beside the addresses, as [`agentcfg_tests::harness::database_settings`] reads them.
    fn settings(&self) -> String {
        let file = |name: &str| self.file(name).display().to_string();
        format!(
            "user={USER}&password={PASSWORD}&tls_ca={}&tls_cert={}&tls_key={}",
            file("authority.crt"),
            file("client.crt"),
            file("client.key")
        )
    }

    /// The database of a server.
    fn database(&self) -> String {
        format!("{}?{}", self.cluster.database(), self.settings())
    }
}

async fn refused(options: EtcdOptions) -> String {
    match EtcdStore::connect(&options).await {
        Ok(_) => panic!("the cluster accepted {options:?}"),
        Err(error) => error.to_string(),
    }
}

/// The contract of the store, and a part of the end-to-end suite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_works_with_certificates_and_a_user() {
    let Some(secured) = Secured::start(&[]) else { return };
    conformance::run(async || Arc::new(EtcdStore::connect(&secured.options()).await.unwrap()) as Arc<dyn Store>).await;
    let place = format!("{}?{}", secured.cluster.endpoints(), secured.settings());
    let suite = move || run_end_to_end_suite("api::", &[], &[("AGENTCFG_TEST_DATABASE", place.as_ref())]);
    tokio::task::spawn_blocking(suite).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_are_refused_with_the_reason() {
    let Some(secured) = Secured::start(&[]) else { return };
    let good = secured.options();
    let pair = |name: &str| {
        let file = |end: &str| secured.file(&format!("{name}.{end}"));
        Some((file("crt"), file("key")))
    };
    let user = |name: &str, password: &str| Some((name.to_owned(), password.to_owned()));
    let cases = [
        (
            "no authorities",
            good.clone().tls_ca(secured.file("client.key")),
            "file of authorities (tls_ca)",
        ),
        (
            "a key of another certificate",
            good.clone()
                .tls_identity((secured.file("client.crt"), secured.file("stranger.key"))),
            "key (tls_key) for the certificate (tls_cert)",
        ),
        (
            "another authority",
            good.clone().tls_ca(secured.file("foreign.crt")),
            "UnknownIssuer",
        ),
        ("public authorities", good.clone().tls_ca(None), "UnknownIssuer"),
        ("no certificate", good.clone().tls_identity(None), "fatal alert"),
        (
            "a foreign certificate",
            good.clone().tls_identity(pair("stranger")),
            "fatal alert",
        ),
        (
            "a wrong password",
            good.clone().user(user(USER, "wrong-canary")),
            "invalid user ID or password",
        ),
        (
            "an unknown user",
            good.clone().user(user("eve", PASSWORD)),
            "invalid user ID or password",
        ),
        (
            "a user without rights",
            good.clone().user(user("other", "other")),
            "the user needs readwrite on the keys that begin with",
        ),
        // The certificate's name is then the user, and there is none with it.
        ("no user", good.clone().user(None), "permission denied"),
    ];
    for (case, options, says) in cases {
        let said = refused(options).await;
        // A member that ends a handshake may close the connection before its reason is read.
        let says = match says {
            "fatal alert" if !said.contains(says) => "connection closed",
            says => says,
        };
        assert!(said.contains(says) && !said.contains("canary"), "{case}: {said}");
    }
    // The name in a certificate can be the user: etcd takes it where there is no token.
    secured.cluster.ctl(&["user", "add", "client:any"]);
    secured.cluster.ctl(&["user", "grant-role", "client", "agentcfg"]);
    EtcdStore::connect(&good.user(None)).await.unwrap();
    // The server names the settings.
    let database = secured.database().replace(PASSWORD, "wrong-canary");
    let said = tokio::task::spawn_blocking(move || Server::refused(&database, &[]))
        .await
        .unwrap();
    assert!(
        said.contains("check etcd_endpoints, etcd_user and the certificates") && !said.contains("canary"),
        "{said}"
    );
}

/// A user for a cluster that has none is refused by the cluster.
#[tokio::test]
async fn a_user_is_refused_by_a_cluster_without_users() {
    let Some(cluster) = Cluster::shared() else { return };
    let said = refused(cluster.options().user(Some((USER.into(), PASSWORD.into())))).await;
    assert!(said.contains("authentication is not enabled"), "{said}");
}

/// No request fails because tokens expire or are withdrawn, or because users and roles change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_that_expire_are_replaced_unseen() {
    let Some(secured) = Secured::start(&["--auth-token-ttl=1"]) else {
        return;
    };
    let database = secured.database();
    let started = {
        let database = database.clone();
        tokio::task::spawn_blocking(move || Server::three(&database))
    };
    let servers = started.await.unwrap();
    let load = Load::start(&servers).await;
    for round in 0..5 {
        load.progress(20).await;
        // Each change of users and roles makes the permissions newer than the tokens.
        let role = format!("role-{round}");
        secured.cluster.ctl(&["role", "add", &role]);
        secured.cluster.ctl(&["role", "grant-permission", &role, "read", "x"]);
        // The tokens of a user end with a change of the password, which is the same as before here.
        set_password(&secured, PASSWORD);
        load.progress(20).await;
    }
    let failed = load.verify(&servers).await;
    assert_eq!(failed, 0, "no creation was refused");
    // Without any request the tokens expire.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    for server in &servers {
        server.api(&token("ada")).workspace().await;
    }
    // Members that have started again know no token.
    secured.cluster.shut_down();
    secured.cluster.up();
    for server in &servers {
        while server.api("").get("/readyz").await.status != 200 {}
        server.api(&token("ada")).workspace().await;
    }
}

/// Rights that are withdrawn from a running store, and given back.
#[tokio::test]
async fn withdrawn_rights_are_an_error_until_they_are_back() {
    let Some(secured) = Secured::start(&[]) else { return };
    let store = EtcdStore::connect(&secured.options()).await.unwrap();
    let batch = || Batch {
        checks: vec![],
        writes: vec![Write::Put(Key::global("x", Kind::Meta, "a"), b"1".to_vec())],
    };
    store.commit(batch()).await.unwrap();
    secured.cluster.ctl(&["user", "revoke-role", USER, "agentcfg"]);
    let said = store.ready().await.unwrap_err().to_string();
    assert!(said.contains("permission denied"), "{said}");
    let said = store.commit(batch()).await.unwrap_err().to_string();
    assert!(said.contains("permission denied"), "{said}");
    secured.cluster.ctl(&["user", "grant-role", USER, "agentcfg"]);
    store.ready().await.unwrap();
    store.commit(batch()).await.unwrap();
}

fn set_password(secured: &Secured, password: &str) {
    secured
        .cluster
        .ctl_with_input(&["user", "passwd", USER, "--interactive=false"], password);
}
