//! The text format of Prometheus, which readers that do not ask for OpenMetrics expect.

/// Rewrites metrics of the OpenMetrics format in the text format. There the description of a counter has the suffix of
/// its samples, and there are neither units nor an end.
pub(super) fn from_open_metrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1024);
    let mut help = "";
    for line in text.lines() {
        if let Some((_, words)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            // The type comes next, and decides on the name.
            help = words;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                _ => ("", kind),
            };
            let description = format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n");
            out.push_str(&description);
        } else if !line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_described_by_the_name_of_their_samples() {
        let text = "# HELP a_requests Requests # answered.\n# TYPE a_requests counter\na_requests_total{status=\"200\"} 1\n\
            # HELP a_took_seconds Time.\n# TYPE a_took_seconds histogram\n# UNIT a_took_seconds seconds\n\
            a_took_seconds_sum 0.5\na_took_seconds_count 1\na_took_seconds_bucket{le=\"+Inf\"} 1\n\
            # HELP a_build Build.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
            # HELP a_odd Odd.\n# TYPE a_odd unknown\na_odd 3\n# EOF\n";
        let expected = "# HELP a_requests_total Requests # answered.\n# TYPE a_requests_total counter\n\
            a_requests_total{status=\"200\"} 1\n\
            # HELP a_took_seconds Time.\n# TYPE a_took_seconds histogram\n\
            a_took_seconds_sum 0.5\na_took_seconds_count 1\na_took_seconds_bucket{le=\"+Inf\"} 1\n\
            # HELP a_build_info Build.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n\
            # HELP a_odd Odd.\n# TYPE a_odd untyped\na_odd 3\n";
        assert_eq!(from_open_metrics(text), expected);
    }
}
