//! JUnit XML: a suite per source, a case per metric.

use analysis::compare::{Check, Verdict};
use analysis::gate::{GateReport, SourceOutcome};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::ktap::sentence;
use super::{details, sides};

/// A gate. A regression is a failure; what keeps the gate from judging is an error.
pub fn junit(report: &GateReport) -> String {
    let mut xml = Report::new(format!("rareplay gate: {}", sides(report)));
    for source in &report.sources {
        xml.add_test_suite(suite(report, source));
    }
    // A file without a case would count as a pass.
    if report.sources.is_empty() {
        let mut suite = TestSuite::new("rareplay gate");
        let status = failed(report.verdict, &report.notes.join("; "));
        suite.add_test_case(TestCase::new("gate", status));
        xml.add_test_suite(suite);
    }
    let text = xml.to_string();
    text.expect("text from memory to memory, without characters that XML cannot hold")
}

fn suite(report: &GateReport, source: &SourceOutcome) -> TestSuite {
    let mut suite = TestSuite::new(source.source.clone());
    let mut add = |name: &str, status| {
        let mut case = TestCase::new(name.to_owned(), status);
        case.set_classname(source.source.clone());
        suite.add_test_case(case);
    };
    if let Some(reason) = &source.reason {
        add("comparable", failed(source.verdict, reason));
    }
    for check in report.checks_of(&source.source) {
        add(check.metric.key(), status(check));
    }
    if !source.why.is_empty() {
        suite.set_system_out(source.why.join("\n"));
    }
    suite
}

fn status(check: &Check) -> TestCaseStatus {
    if check.verdict.is_good() {
        return TestCaseStatus::success();
    }
    let mut status = failed(check.verdict, &sentence(check));
    status.set_description(details(check).join("\n"));
    status
}

fn failed(verdict: Verdict, message: &str) -> TestCaseStatus {
    let kind = match verdict {
        Verdict::Regressed => NonSuccessKind::Failure,
        _ => NonSuccessKind::Error,
    };
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(verdict.name());
    status.set_message(message.to_owned());
    status
}
