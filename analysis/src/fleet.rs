//! Captures of many machines: a list of sources, a result for each under each policy, and what all of
//! them come to.
//!
//! [`read_list`] reads the list, [`Fleet::replay`] replays one of its entries and gives a [`Row`] per
//! policy, the rows of `rareplay.result/1` (docs/fleet.md). Rows are independent of each other and of
//! what else is in the list, so that any number of machines can make them. [`Results`] puts them
//! together: each is there once, in whatever order and however often it comes. [`Tally`] adds them up
//! and [`FleetReport`] shows them by host, kernel or workload; [`sides`] hands them to the gate.
//!
//! A row is kept under its [`Slot`], which is what was asked: an entry of the list under a policy, a
//! device and settings. Its key is what it was made of: the content of the capture and of all that
//! belongs to it, the policy's code, the settings, the version of this program. A slot whose key is
//! still the same is not done again.

mod key;
mod list;
mod report;
mod results;
mod row;
mod run;
mod sides;
mod tally;
mod waits;

pub use key::Content;
pub use list::{ListError, Listed, parse_list, read_list};
pub use report::{
    Distribution, FailedSource, FleetOptions, FleetReport, GroupReport, PolicyTally, Quantile,
};
pub use results::{Folder, Results, ResultsError, Shelf, is_results, pack, read_rows, unpack};
pub use row::{Row, Slot};
pub use run::{Fetched, Fleet, Local, Made, Origin};
pub use sides::{Group, sides};
pub use tally::Tally;
pub use waits::WaitCounts;

/// Name of the schema of results.
pub const SCHEMA: &str = "rareplay.result/1";
