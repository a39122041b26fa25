//! The messages of etcd's API version 3 that the store sends and reads, with the field numbers of its protocol files.
//!
//! They are written by hand, so that a build needs no protobuf compiler. Fields that the store does not use are left
//! out: a reader skips them.

use prost::{Enumeration, Message, Oneof};

/// The paths of the remote procedures.
pub(super) mod path {
    pub(crate) const TXN: &str = "/etcdserverpb.KV/Txn";
    pub(crate) const RANGE: &str = "/etcdserverpb.KV/Range";
    pub(crate) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
    pub(crate) const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
    pub(crate) const LEASE_REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
    pub(crate) const LEASE_KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
    pub(crate) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseHeader {
    #[prost(uint64, tag = "1")]
    pub(super) cluster_id: u64,
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(super) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(super) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(super) value: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(super) enum SortOrder {
    None = 0,
    Descend = 2,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) limit: i64,
    #[prost(int64, tag = "4")]
    pub(super) revision: i64,
    /// The target of the order is the key, which is the default of a field that is left out.
    #[prost(enumeration = "SortOrder", tag = "5")]
    pub(super) sort_order: i32,
    #[prost(bool, tag = "7")]
    pub(super) serializable: bool,
    #[prost(bool, tag = "8")]
    pub(super) keys_only: bool,
    /// Keys that were last changed before this revision are left out of the answer, but not out of its count.
    #[prost(int64, tag = "10")]
    pub(super) min_mod_revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
    #[prost(bool, tag = "3")]
    pub(super) more: bool,
    #[prost(int64, tag = "4")]
    pub(super) count: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutResponse {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) range_end: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRangeResponse {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Request", tags = "1, 2, 3")]
    pub(super) request: Option<Request>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Request {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseOp {
    #[prost(oneof = "Response", tags = "1, 2, 3")]
    pub(super) response: Option<Response>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Response {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "2")]
    Put(PutResponse),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeResponse),
}

/// The comparison that the store uses: the revision of the last change of a key equals this one; 0 for a key that is
/// absent.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Compare {
    /// 0 is "equal".
    #[prost(int32, tag = "1")]
    result: i32,
    /// 2 is the revision of the last change.
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    pub(super) key: Vec<u8>,
    #[prost(int64, optional, tag = "6")]
    mod_revision: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(super) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(super) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusRequest {
    /// No field of etcd's. A server skips it, so that it shows whether a request of this size is accepted.
    #[prost(bytes = "vec", tag = "1000")]
    pub(super) padding: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    pub(super) version: String,
    #[prost(int64, tag = "3")]
    pub(super) db_size: i64,
    /// The alarms of the cluster, and whether the member knows no leader.
    #[prost(string, repeated, tag = "8")]
    pub(super) errors: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseGrantRequest {
    /// In seconds.
    #[prost(int64, tag = "1")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
}

/// Of a keep-alive and of a revocation.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseRequest {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseKeepAliveResponse {
    /// The seconds that are left; 0 when the lease does not exist.
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeaseRevokeResponse {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) password: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(super) token: String,
}

/// An answer, which may name the cluster that it is from.
pub(super) trait Headed {
    /// The identifier of the cluster, if the answer has it.
    fn cluster(&self) -> Option<u64> {
        None
    }
}

impl Headed for AuthenticateResponse {}
impl Headed for LeaseGrantResponse {}
impl Headed for LeaseRevokeResponse {}

impl Headed for RangeResponse {
    fn cluster(&self) -> Option<u64> {
        self.header.as_ref().map(|header| header.cluster_id)
    }
}

impl Headed for StatusResponse {
    fn cluster(&self) -> Option<u64> {
        self.header.as_ref().map(|header| header.cluster_id)
    }
}

impl Headed for TxnResponse {
    fn cluster(&self) -> Option<u64> {
        self.header.as_ref().map(|header| header.cluster_id)
    }
}

impl Compare {
    /// The key was last changed in this revision.
    pub(super) fn changed_in(key: Vec<u8>, revision: i64) -> Self {
        const EQUAL: i32 = 0;
        const MOD: i32 = 2;
        Self {
            result: EQUAL,
            target: MOD,
            key,
            mod_revision: Some(revision),
        }
    }
}

impl RequestOp {
    pub(super) fn range(range: RangeRequest) -> Self {
        Self {
            request: Some(Request::Range(range)),
        }
    }

    pub(super) fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> Self {
        Self {
            request: Some(Request::Put(PutRequest { key, value, lease })),
        }
    }

    pub(super) fn delete(key: Vec<u8>) -> Self {
        Self::delete_range(key, Vec::new())
    }

    /// Deletes the keys from `key` up to `range_end`, which is excluded.
    pub(super) fn delete_range(key: Vec<u8>, range_end: Vec<u8>) -> Self {
        Self {
            request: Some(Request::DeleteRange(DeleteRangeRequest { key, range_end })),
        }
    }
}

impl RangeRequest {
    /// Reads one key.
    pub(super) fn key(key: Vec<u8>) -> Self {
        Self { key, ..Self::default() }
    }

    /// Reads the keys from `first` up to `end`, which is excluded.
    pub(super) fn between(first: Vec<u8>, end: Vec<u8>) -> Self {
        Self {
            key: first,
            range_end: end,
            ..Self::default()
        }
    }
}

impl TxnResponse {
    pub(super) fn revision(&self) -> i64 {
        self.header.as_ref().map_or(0, |header| header.revision)
    }

    /// The answers of the reads.
    pub(super) fn ranges(self) -> impl Iterator<Item = RangeResponse> {
        self.responses.into_iter().filter_map(|op| match op.response {
            Some(Response::Range(range)) => Some(range),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of the protocol's own encoder.
    #[test]
    fn a_comparison_has_the_fields_of_the_protocol() {
        let compare = Compare::changed_in(b"k".to_vec(), 0);
        assert_eq!(compare.encode_to_vec(), [0x10, 2, 0x1a, 1, b'k', 0x30, 0]);
        let put = RequestOp::put(b"k".to_vec(), b"v".to_vec(), 0);
        assert_eq!(put.encode_to_vec(), [0x12, 6, 0x0a, 1, b'k', 0x12, 1, b'v']);
    }
}
