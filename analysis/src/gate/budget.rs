//! `gate.toml`: how much worse each metric may be.
//!
//! ```toml
//! [default]                                  # every metric of every source
//! soft_percent = 0.1
//!
//! [metric."device_reads.count"]              # one metric of every source
//! soft_percent = 1
//! floor = 16                                 # in the unit of the metric
//!
//! [source."rand4k.workload.toml"]            # every metric of one source
//! soft_percent = 2
//! reason = "random reads: windows depend on chance"
//! expires = 2027-03-01
//!
//! [source."rand4k.workload.toml".metric.elapsed_ns]
//! hard = 250_000_000                         # never worse than this
//! reason = "the limit of the product"
//!
//! [metric."read_wait_ns.max"]
//! ignore = true
//! reason = "one read decides it"
//!
//! [statistics]                               # for captures of several runs
//! alpha = 0.05
//! power = 0.8
//! ```
//!
//! A field of a more special entry replaces that of a more general one. What
//! makes an exception (an entry of a source, `ignore`, `expires`) must say why.
//! An entry is out of force after the day it expires on, and the report says so.

use std::collections::BTreeMap;

use serde::Deserialize;
pub use toml::value::Date;
use toml::value::Datetime;

use crate::compare::{Budget, Metric, TestOptions};

/// A `gate.toml` that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// It is not TOML, or has unknown fields.
    #[error(transparent)]
    Parse(#[from] Box<toml::de::Error>),
    /// No such metric.
    #[error("unknown metric `{key}`; known are {}", Metric::ALL.map(Metric::key).join(", "))]
    UnknownMetric {
        /// The key.
        key: String,
    },
    /// A number that is no budget.
    #[error("{entry}: `{field}` is {value}, which is no budget")]
    BadNumber {
        /// The entry.
        entry: String,
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A field in the unit of a metric in an entry that has none.
    #[error("{entry}: `{field}` needs a metric: its unit is that of the metric")]
    NeedsMetric {
        /// The entry.
        entry: String,
        /// The field.
        field: &'static str,
    },
    /// An exception without a reason.
    #[error("{entry} makes an exception: give it a `reason`")]
    NoReason {
        /// The entry.
        entry: String,
    },
    /// `expires` is not a date.
    #[error("{entry}: `expires` is {value}, not a date such as 2027-03-01")]
    BadDate {
        /// The entry.
        entry: String,
        /// What stands there.
        value: String,
    },
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Document {
    default: Rule,
    metric: BTreeMap<String, Rule>,
    source: BTreeMap<String, SourceRules>,
    statistics: Statistics,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rule {
    soft_percent: Option<f64>,
    floor: Option<f64>,
    hard: Option<f64>,
    ignore: Option<bool>,
    reason: Option<String>,
    expires: Option<Datetime>,
}

/// The fields of [`Rule`], which TOML writes into the same table, and the metrics.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SourceRules {
    soft_percent: Option<f64>,
    ignore: Option<bool>,
    reason: Option<String>,
    expires: Option<Datetime>,
    metric: BTreeMap<String, Rule>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Statistics {
    alpha: Option<f64>,
    power: Option<f64>,
}

/// Budgets in force on a day.
#[derive(Clone, Debug, Default)]
pub struct Budgets {
    default: Rule,
    metric: BTreeMap<Metric, Rule>,
    source: BTreeMap<String, Rule>,
    source_metric: BTreeMap<(String, Metric), Rule>,
    test: TestOptions,
    expired: Vec<String>,
}

impl Budgets {
    /// Reads a `gate.toml` as it is in force `today`.
    pub fn parse(text: &str, today: Date) -> Result<Self, BudgetError> {
        let document: Document = toml::from_str(text).map_err(Box::new)?;
        let mut budgets = Self { test: document.statistics.options()?, ..Self::default() };
        if let Some(rule) = budgets.admit("[default]", document.default, false, today)? {
            budgets.default = rule;
        }
        for (key, rule) in document.metric {
            let entry = format!("[metric.{key:?}]");
            let metric = metric(&key)?;
            if let Some(rule) = budgets.admit(&entry, rule, true, today)? {
                budgets.metric.insert(metric, rule);
            }
        }
        for (source, rules) in document.source {
            budgets.add_source(&source, rules, today)?;
        }
        Ok(budgets)
    }

    fn add_source(
        &mut self,
        source: &str,
        rules: SourceRules,
        today: Date,
    ) -> Result<(), BudgetError> {
        let entry = format!("[source.{source:?}]");
        let SourceRules { soft_percent, ignore, reason, expires, metric: metrics } = rules;
        let own = Rule { soft_percent, ignore, reason, expires, ..Rule::default() };
        if own.is_exception() || soft_percent.is_some() {
            own.check_reason(&entry)?;
        }
        if let Some(rule) = self.admit(&entry, own, false, today)? {
            self.source.insert(source.to_owned(), rule);
        }
        for (key, rule) in metrics {
            let entry = format!("[source.{source:?}.metric.{key:?}]");
            let metric = metric(&key)?;
            rule.check_reason(&entry)?;
            if let Some(rule) = self.admit(&entry, rule, true, today)? {
                self.source_metric.insert((source.to_owned(), metric), rule);
            }
        }
        Ok(())
    }

    /// Checks a rule; `None` if it has expired.
    fn admit(
        &mut self,
        entry: &str,
        rule: Rule,
        has_metric: bool,
        today: Date,
    ) -> Result<Option<Rule>, BudgetError> {
        rule.check(entry, has_metric)?;
        let Some(expires) = rule.expires else { return Ok(Some(rule)) };
        let date = expires.date.filter(|_| expires.time.is_none());
        let date = date.ok_or_else(|| BudgetError::BadDate {
            entry: entry.to_owned(),
            value: expires.to_string(),
        })?;
        if date < today {
            self.expired.push(format!("budget {entry} expired on {date} and is out of force"));
            return Ok(None);
        }
        Ok(Some(rule))
    }

    /// The budget of a metric of a source; `None` if it is to be ignored.
    pub fn of(&self, source: &str, metric: Metric, sampled: bool) -> Option<Budget> {
        let mut budget = Budget::usual(metric, sampled);
        let mut ignore = false;
        let rules = [
            Some(&self.default),
            self.metric.get(&metric),
            self.source.get(source),
            self.source_metric.get(&(source.to_owned(), metric)),
        ];
        for rule in rules.into_iter().flatten() {
            budget.soft_percent = rule.soft_percent.unwrap_or(budget.soft_percent);
            budget.floor = rule.floor.unwrap_or(budget.floor);
            budget.hard = rule.hard.or(budget.hard);
            budget.reason = rule.reason.clone().or(budget.reason);
            ignore = rule.ignore.unwrap_or(ignore);
        }
        (!ignore).then_some(budget)
    }

    /// How sure answers about sampled metrics have to be.
    pub fn test(&self) -> &TestOptions {
        &self.test
    }

    /// What a reader should know: entries out of force, and entries of sources that are not there.
    pub fn notes<'a>(&self, has_source: impl Fn(&str) -> bool + 'a) -> Vec<String> {
        let of_metrics = self.source_metric.keys().map(|(source, _)| source);
        let mut absent: Vec<&String> =
            self.source.keys().chain(of_metrics).filter(|source| !has_source(source)).collect();
        absent.sort();
        absent.dedup();
        let absent = absent.into_iter().map(|source| format!("no source is called {source:?}"));
        let absent = absent.map(|note| format!("{note}, but a budget is for it"));
        self.expired.iter().cloned().chain(absent).collect()
    }
}

fn metric(key: &str) -> Result<Metric, BudgetError> {
    Metric::from_key(key).ok_or_else(|| BudgetError::UnknownMetric { key: key.to_owned() })
}

impl Rule {
    fn is_exception(&self) -> bool {
        self.ignore == Some(true) || self.expires.is_some()
    }

    fn check_reason(&self, entry: &str) -> Result<(), BudgetError> {
        match self.reason.as_deref().map(str::trim) {
            None | Some("") => Err(BudgetError::NoReason { entry: entry.to_owned() }),
            Some(_) => Ok(()),
        }
    }

    fn check(&self, entry: &str, has_metric: bool) -> Result<(), BudgetError> {
        let entry = || entry.to_owned();
        for (field, value) in [("soft_percent", self.soft_percent), ("floor", self.floor)] {
            if let Some(value) = value.filter(|value| !value.is_finite() || *value < 0.0) {
                return Err(BudgetError::BadNumber { entry: entry(), field, value });
            }
        }
        if let Some(value) = self.hard.filter(|value| !value.is_finite()) {
            return Err(BudgetError::BadNumber { entry: entry(), field: "hard", value });
        }
        for (field, value) in [("floor", self.floor), ("hard", self.hard)] {
            if value.is_some() && !has_metric {
                return Err(BudgetError::NeedsMetric { entry: entry(), field });
            }
        }
        if self.is_exception() {
            self.check_reason(&entry())?;
        }
        Ok(())
    }
}

impl Statistics {
    fn options(&self) -> Result<TestOptions, BudgetError> {
        let usual = TestOptions::default();
        let share = |field, value: Option<f64>, usual: f64| match value {
            Some(value) if !(value > 0.0 && value < 1.0) => {
                Err(BudgetError::BadNumber { entry: "[statistics]".to_owned(), field, value })
            }
            value => Ok(value.unwrap_or(usual)),
        };
        Ok(TestOptions {
            alpha: share("alpha", self.alpha, usual.alpha)?,
            power: share("power", self.power, usual.power)?,
        })
    }
}
