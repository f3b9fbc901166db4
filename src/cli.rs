//! Arguments, as clap reads them.

use std::ffi::OsString;
use std::path::PathBuf;

use analysis::compare::Metric;
use analysis::fleet::Group;
use analysis::sweep::{DEVICE, Goal};
use anstream::ColorChoice;
use clap::{Args, Parser, Subcommand, ValueEnum};
use traces::event::Device;
use traces::units::Time;

/// Replays Linux readahead: what another readahead would do to a recorded workload.
#[derive(Debug, Parser)]
#[command(name = "rareplay", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Whether to use colours.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: When,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal that has them, unless the environment is against it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<When> for ColorChoice {
    fn from(when: When) -> Self {
        match when {
            When::Auto => Self::Auto,
            When::Always => Self::Always,
            When::Never => Self::Never,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what is in a capture: kernel, files, streams, orders, device reads, losses.
    Inspect(InspectArgs),
    /// Replay captures under the kernel that made them and compare folio by folio.
    Verify(VerifyArgs),
    /// Replay sources under other policies, one column per policy.
    Replay(ReplayArgs),
    /// Put results of `replay --from-list` together into one table.
    Merge(MergeArgs),
    /// Compare one source under two policies, with the proof that the replay is right.
    Compare(CompareArgs),
    /// Explain how two policies differ: first divergence, causes of small folios.
    Explain(ExplainArgs),
    /// Write one HTML page over one or many sources, with charts and the data behind them.
    Report(ReportArgs),
    /// Replay sources over a range of settings and recommend a value.
    Sweep(SweepArgs),
    /// Judge a corpus under two policies, or against a baseline; the exit code is the verdict.
    Gate(GateArgs),
    /// Write captures as Parquet, for other tools and to be read again.
    Convert(ConvertArgs),
    /// Fit a device model to recorded latencies.
    Calibrate(CalibrateArgs),
    /// Run a program and record what it reads, through tracefs.
    Record(RecordArgs),
    /// List the built-in policies, show one, or build a kernel tree's.
    Policy(PolicyArgs),
}

/// An argument that clap cannot judge.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for the terminal.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// Comma-separated values.
    Csv,
    /// Tables for pull requests.
    Markdown,
    /// 72-column tables for a changelog.
    Mail,
}

/// How replays are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayFormat {
    /// Tables for the terminal.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// Comma-separated values.
    Csv,
    /// Tables for pull requests.
    Markdown,
    /// 72-column tables for a changelog.
    Mail,
    /// A timeline in the trace event format, for the Perfetto UI.
    Perfetto,
}

/// How sources are read.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Override a setting of the source, such as `read_ahead_kb=256`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) input: InputArgs,
}

/// What is taken for a source.
#[derive(Clone, Debug, Args)]
pub(crate) struct InputArgs {
    /// Replay streams that only show what readahead did, not what the program asked for.
    #[arg(long)]
    pub(crate) allow_inferred: bool,

    /// Go on with a capture that lost events.
    #[arg(long)]
    pub(crate) allow_loss: bool,

    /// Another file of the same run, such as blktrace's beside ftrace's; may be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) join: Vec<PathBuf>,

    /// Clock of the capture's time stamps, such as mono, where the file does not say.
    #[arg(long, value_name = "CLOCK")]
    pub(crate) clock: Option<String>,

    /// Take the accesses from this list instead of the capture's events.
    #[arg(long, value_name = "FILE")]
    pub(crate) accesses: Option<PathBuf>,
}

/// How policies that are kernel trees are built and run.
#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// Run a kernel tree's code in this process, without the worker that guards against it.
    #[arg(long)]
    pub(crate) in_process: bool,
    /// Whose read path goes around a kernel tree's readahead.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) read_path: ReadPath,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReadPath {
    /// The tree's own.
    #[default]
    Tree,
    /// The built-in one of the tree's kernel line.
    Native,
}

/// What time is modelled with.
#[derive(Debug, Args)]
pub(crate) struct DeviceArgs {
    /// Device model: a preset, or a file such as `calibrate` writes.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) device: Option<String>,
}

/// How results are shown.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// What results of a list are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Machine.
    Host,
    /// Kernel.
    Kernel,
    /// What the machine was doing.
    Workload,
}

impl From<By> for Group {
    fn from(by: By) -> Self {
        match by {
            By::Host => Self::Host,
            By::Kernel => Self::Kernel,
            By::Workload => Self::Workload,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Captures, or results of `replay --from-list`.
    #[arg(required = true, value_name = "CAPTURE|RESULTS")]
    pub(crate) captures: Vec<PathBuf>,
    /// Of results: what to put together; hosts if missing.
    #[arg(long, value_enum, value_name = "LABEL")]
    pub(crate) by: Option<By>,
    /// Of results: what the worst are worst by, as budgets name it; `read_wait_ns.p99` if missing.
    #[arg(long, value_name = "METRIC", value_parser = parse_metric)]
    pub(crate) metric: Option<Metric>,
    /// List only the files that most bytes were asked of; of results, the worst.
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What part of a capture to look at. Options of different kinds must all hold; of values of one
/// kind, any.
#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// Only this thread, and the requests it made; may be repeated.
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Vec<u32>,
    /// Only threads of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) comm: Vec<String>,
    /// Only files and requests of this device; the two may differ, as with partitions.
    #[arg(long, value_name = "MAJOR:MINOR")]
    pub(crate) dev: Vec<Device>,
    /// Only this file, and the requests for it (decimal, or hexadecimal after 0x).
    #[arg(long, value_name = "INODE", value_parser = parse_inode)]
    pub(crate) inode: Vec<u64>,
    /// Only from this time stamp on, in seconds on the clock of the trace.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) from: Option<Time>,
    /// Only up to this time stamp.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) to: Option<Time>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Captures, or folders of captures.
    #[arg(required = true, value_name = "CAPTURE")]
    pub(crate) captures: Vec<PathBuf>,
    /// Policy to hold the captures against; their own kernel's if missing.
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Captures and workload descriptions.
    #[arg(required_unless_present = "from_list", value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    /// Policy to replay under; give it once per column.
    #[arg(long = "policy", value_name = "POLICY", required = true)]
    pub(crate) policies: Vec<String>,
    /// Replay every source of this list, and print a line of JSON for each, in any order.
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["sources", "format"])]
    pub(crate) from_list: Option<PathBuf>,
    /// Keep the list's results in this table (.parquet) or folder instead; what is there already is
    /// not done again.
    #[arg(short = 'o', long = "output", value_name = "FILE|DIR", requires = "from_list")]
    pub(crate) results: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReplayFormat,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Results: tables, folders of them, or the lines that `replay --from-list` prints.
    #[arg(required = true, value_name = "RESULTS")]
    pub(crate) results: Vec<PathBuf>,
    /// The table to write.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// One capture, workload description or result of `replay --from-list`, with --policy twice; or
    /// two captures, folders of captures, or saved results, the one to start from first.
    #[arg(required = true, num_args = 1..=2, value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    /// The two policies, the one to start from first.
    #[arg(long = "policy", value_name = "POLICY")]
    pub(crate) policies: Vec<String>,
    /// Of results of `replay --from-list`: compare what these come to, not source by source.
    #[arg(long, value_enum, value_name = "LABEL")]
    pub(crate) by: Option<By>,
    /// Also write an HTML page with charts and the data behind them.
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Write each chart as a PNG image too.
    #[arg(long, requires = "directory")]
    pub(crate) png: bool,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ReplayFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Captures, workload descriptions, and folders of them; or results of `replay --from-list`.
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    /// Policy to replay under; two are judged against each other. A capture's own kernel's if
    /// missing.
    #[arg(long = "policy", value_name = "POLICY", conflicts_with_all = ["baseline", "candidate"])]
    pub(crate) policies: Vec<String>,
    /// What to judge by: a policy, a baseline (.toml) or saved results (.json).
    #[arg(long, value_name = "POLICY|FILE", requires = "candidate")]
    pub(crate) baseline: Option<String>,
    /// The policy to judge.
    #[arg(long, value_name = "POLICY", requires = "baseline")]
    pub(crate) candidate: Option<String>,
    /// How much worse each metric may be.
    #[arg(long, value_name = "FILE")]
    pub(crate) budget: Option<PathBuf>,
    /// The folder to write.
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Write the charts as PNG too.
    #[arg(long)]
    pub(crate) png: bool,
    /// Of results of `replay --from-list`: what to put together; hosts if missing.
    #[arg(long, value_enum, value_name = "LABEL")]
    pub(crate) by: Option<By>,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SweepGoal {
    /// The smallest elapsed time.
    #[default]
    Elapsed,
    /// The smallest 99th percentile of the waits of reads.
    Wait,
    /// The fewest device reads.
    Reads,
}

impl From<SweepGoal> for Goal {
    fn from(goal: SweepGoal) -> Self {
        match goal {
            SweepGoal::Elapsed => Self::Elapsed,
            SweepGoal::Wait => Self::Wait,
            SweepGoal::Reads => Self::Reads,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Captures and workload descriptions.
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    /// Policy to replay under, any number of times; a capture's own kernel's if missing.
    #[arg(long = "policy", value_name = "POLICY")]
    pub(crate) policies: Vec<String>,
    /// One or two settings with their values: `read_ahead_kb=64..4096` (powers of two),
    /// `read_ahead_kb=0..512:64` (steps), `memory=64M,256M,1G`, `device=hdd,nvme`. With a single
    /// value it overrides a setting, as elsewhere.
    #[arg(long = "set", value_name = "KEY=VALUES", required = true, value_parser = parse_swept)]
    pub(crate) set: Vec<(String, String)>,
    /// What the recommended value is chosen by.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) goal: SweepGoal,
    /// How much worse than the best a smaller value may be and still be recommended.
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = parse_percent)]
    pub(crate) tolerance: f64,
    /// Also write an HTML page with the chart and the data behind it.
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Write the chart as a PNG image too.
    #[arg(long, requires = "directory")]
    pub(crate) png: bool,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateFormat {
    /// Tables for the terminal.
    #[default]
    Text,
    /// One JSON document, `rareplay.gate/1`.
    Json,
    /// JUnit XML for CI systems.
    Junit,
    /// KTAP for kernel test robots.
    Ktap,
    /// A comment for a pull request, below 64 KiB.
    Markdown,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct GateArgs {
    /// Captures, workload descriptions, and folders of them, to replay under policies; or results of
    /// `replay --from-list`, which have been.
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<PathBuf>,
    /// What to compare with: a policy, a baseline (.toml), saved results (.json), or captures.
    #[arg(long, value_name = "POLICY|FILE")]
    pub(crate) baseline: String,
    /// What to judge.
    #[arg(long, value_name = "POLICY|FILE", required_unless_present = "self_test")]
    pub(crate) candidate: Option<String>,
    /// How much worse each metric may be.
    #[arg(long, value_name = "FILE")]
    pub(crate) budget: Option<PathBuf>,
    /// Of results of `replay --from-list`: judge what these come to, not source by source.
    #[arg(long, value_enum, value_name = "LABEL")]
    pub(crate) by: Option<By>,
    /// Write the candidate's figures as the new baseline.
    #[arg(long, conflicts_with_all = ["bisect", "self_test"])]
    pub(crate) accept: bool,
    /// Exit as git bisect run wants it: 0 for a pass, 1 for a regression, 125 for anything else.
    #[arg(long, conflicts_with = "self_test")]
    pub(crate) bisect: bool,
    /// Judge the baseline with a regression planted in it, which has to exit with 10.
    #[arg(long, conflicts_with = "candidate")]
    pub(crate) self_test: bool,
    /// Also write the verdict and the exit code here, as lines of NAME=VALUE.
    #[arg(long, value_name = "FILE")]
    pub(crate) verdict_file: Option<PathBuf>,
    /// Add the candidate's figures to this file and report where they changed.
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
    /// What the history calls this run, such as a commit; the candidate's name if missing.
    #[arg(long, value_name = "LABEL", requires = "history")]
    pub(crate) history_label: Option<String>,
    /// Smallest change that the history reports.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(crate) history_change: f64,
    /// Override a setting of every source, such as `read_ahead_kb=256`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
    /// The device to model.
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) device: Option<String>,
    /// Replay streams that only show what readahead did, not what the program asked for.
    #[arg(long)]
    pub(crate) allow_inferred: bool,
    /// Go on with captures that lost events.
    #[arg(long)]
    pub(crate) allow_loss: bool,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: GateFormat,
    /// Write the result here instead of standard output.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A capture or workload description.
    #[arg(value_name = "SOURCE")]
    pub(crate) source_path: PathBuf,
    /// The two policies.
    #[arg(long = "policy", value_name = "POLICY", required = true)]
    pub(crate) policies: Vec<String>,
    /// Look only at the file with this inode number (decimal, or hexadecimal after 0x).
    #[arg(long, value_name = "INODE", value_parser = parse_inode)]
    pub(crate) file: Option<u64>,
    /// Look for the first divergence at or after this access, counted from 0.
    #[arg(long, value_name = "ACCESS", default_value_t)]
    pub(crate) at: u64,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// Captures, or folders of captures.
    #[arg(required = true, value_name = "CAPTURE")]
    pub(crate) captures: Vec<PathBuf>,
    /// The file to write, or for several captures the folder.
    #[arg(short = 'o', long = "output", value_name = "FILE|DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Captures that record when requests are issued and complete.
    #[arg(required = true, value_name = "CAPTURE")]
    pub(crate) captures: Vec<PathBuf>,
    /// Where to write the device model; how well it fits is printed then.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How to print how well it fits.
    #[arg(long, value_enum, default_value_t, requires = "output")]
    pub(crate) format: TableFormat,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
}

/// How a table is printed that scripts have no use for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// For the terminal.
    #[default]
    Text,
    /// For pull requests.
    Markdown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordFormat {
    /// Ftrace text in one file, packed if its name ends in .zst.
    #[default]
    Text,
    /// Ring-buffer pages in a directory: times in nanoseconds, and the least work while recording.
    Raw,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Record reads of this file; may be given several times.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mount", "dev"])]
    pub(crate) file: Vec<PathBuf>,
    /// Record reads of the filesystem that is mounted here, or holds this path.
    #[arg(long, value_name = "DIR", conflicts_with = "dev")]
    pub(crate) mount: Option<PathBuf>,
    /// Record reads of the filesystem on this block device (a path, or MAJOR:MINOR).
    #[arg(long, value_name = "DEVICE")]
    pub(crate) dev: Option<PathBuf>,
    /// How to keep the events.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RecordFormat,
    /// Where to write the capture; rareplay.ftrace or rareplay.pages if missing. What it cannot say
    /// of itself is written beside it, to NAME.meta.toml.
    #[arg(short = 'o', long = "output", value_name = "FILE|DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Ring buffer per CPU; if missing, 64 MiB, and at most a 32nd of the memory for all.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) buffer: Option<u64>,
    /// Drop the machine's clean caches before.
    #[arg(long)]
    pub(crate) drop_caches: bool,
    /// The program to run, and its arguments. Its exit code is passed on.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// All built-in policies.
    List {
        /// How to print them.
        #[arg(long, value_enum, default_value_t)]
        format: TableFormat,
    },
    /// One policy: what it does, the commits it follows, how it was checked.
    Show {
        /// Its name.
        name: String,
    },
    /// Build the readahead of a kernel tree ahead of its use as `tree:TREE`.
    Build {
        /// A directory, a git repository with @REV, or a source package (.tar.xz).
        #[arg(value_name = "TREE[@REV]")]
        tree: String,
        /// Apply this patch, in memory, to what is read.
        #[arg(long, value_name = "FILE")]
        patch: Option<PathBuf>,
        /// Leave the folder that was compiled, and say where it is.
        #[arg(long)]
        keep: bool,
        #[command(flatten)]
        run: TreeArgs,
    },
}

fn parse_set(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    if !traces::settings::KEYS.contains(&key) {
        return Err(format!("unknown setting; known are {}", traces::settings::KEYS.join(", ")));
    }
    Ok((key.to_owned(), value.to_owned()))
}

fn parse_metric(text: &str) -> Result<Metric, String> {
    Metric::from_key(text).ok_or_else(|| {
        format!("unknown metric; known are {}", Metric::ALL.map(Metric::key).join(", "))
    })
}

fn parse_size(text: &str) -> Result<u64, String> {
    traces::settings::parse_bytes(text).ok_or_else(|| "expected a size such as 64M".to_owned())
}

/// A setting, or the device, which no other command takes as one.
fn parse_swept(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, values)) if key == DEVICE => Ok((key.to_owned(), values.to_owned())),
        _ => parse_set(text),
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent: &f64| percent.is_finite() && *percent >= 0.0);
    percent.ok_or_else(|| "expected a percentage, 0 or more".to_owned())
}

fn parse_inode(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "expected an inode number, decimal or hexadecimal after 0x".to_owned())
}

/// Seconds with up to nine digits behind the point, exactly.
fn parse_seconds(text: &str) -> Result<Time, String> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let time = (is_digits(seconds) && is_digits(fraction) && fraction.len() <= 9)
        .then(|| format!("{seconds}{fraction:0<9}").parse().ok())
        .flatten();
    time.map(Time).ok_or_else(|| "expected seconds, such as 2084.021443".to_owned())
}
