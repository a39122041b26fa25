//! Where a request and its model calls are in a trace. Whether they are in one is for an [`Observer`] to decide.

use hyper::header::HeaderMap;

use super::observer::Observer;
use super::trace::{Span, TraceContext};

/// Where a request is in a trace.
#[derive(Debug)]
pub struct RequestTrace {
    /// The place that the caller names.
    pub caller: Option<TraceContext>,
    /// The place of the request itself.
    pub request: TraceContext,
}

impl RequestTrace {
    /// Begins the span of a request, if the observer wants it.
    pub fn begin(observer: &dyn Observer, headers: &HeaderMap) -> Option<Box<Self>> {
        if !observer.wants_traces() {
            return None;
        }
        let caller = TraceContext::of_caller(headers);
        let request = observer.new_span(caller.as_ref())?;
        Some(Box::new(Self { caller, request }))
    }

    /// The span of the request.
    pub fn span(&self) -> Span {
        Span {
            context: self.request,
            parent: self.caller.map(|caller| caller.span_id),
            has_remote_parent: self.caller.is_some(),
        }
    }

    /// Begins the span of a model call: part of what the caller names, else of the request.
    pub fn begin_call(&self, observer: &dyn Observer) -> Option<Span> {
        let parent = self.caller.unwrap_or(self.request);
        Some(Span {
            context: observer.new_span(Some(&parent))?,
            parent: Some(parent.span_id),
            has_remote_parent: self.caller.is_some(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;
    use crate::api::Answered;
    use crate::api::trace::TRACEPARENT;

    const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// Gives each span the identifier 7.
    struct Traces(bool);

    impl Observer for Traces {
        fn answered(&self, _: &Answered<'_>) {}

        fn wants_traces(&self) -> bool {
            self.0
        }

        fn new_span(&self, parent: Option<&TraceContext>) -> Option<TraceContext> {
            Some(TraceContext {
                trace_id: parent.map_or(5, |parent| parent.trace_id),
                span_id: 7,
                flags: 1,
            })
        }
    }

    fn sent(fields: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(TRACEPARENT, HeaderValue::from_static(field));
        }
        headers
    }

    #[test]
    fn a_call_is_part_of_what_the_caller_names_else_of_the_request() {
        let trace = RequestTrace::begin(&Traces(true), &sent(&[CALLER])).unwrap();
        let expected = Span {
            context: TraceContext {
                trace_id: TRACE,
                span_id: 7,
                flags: 1,
            },
            parent: Some(0x00f0_67aa_0ba9_02b7),
            has_remote_parent: true,
        };
        assert_eq!(trace.span(), expected);
        assert_eq!(trace.begin_call(&Traces(true)), Some(expected));

        for fields in [&[][..], &["nonsense"], &[CALLER, CALLER]] {
            let trace = RequestTrace::begin(&Traces(true), &sent(fields)).unwrap();
            let (request, call) = (trace.span(), trace.begin_call(&Traces(true)).unwrap());
            assert_eq!((request.parent, request.context.trace_id), (None, 5), "{fields:?}");
            assert_eq!((call.parent, call.context.trace_id), (Some(7), 5), "{fields:?}");
            assert!(!call.has_remote_parent);
        }
        assert!(RequestTrace::begin(&Traces(false), &sent(&[CALLER])).is_none());
    }
}
