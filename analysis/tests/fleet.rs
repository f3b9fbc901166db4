//! Fleets through the library: lists, keys, putting results together, adding them up.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use analysis::compare::{Metric, Verdict};
use analysis::fleet::{
    Content, Fetched, Fleet, FleetOptions, FleetReport, Group, Listed, Local, Made, Origin,
    Results, Row, Tally, WaitCounts, parse_list, sides,
};
use analysis::gate::{Budgets, MeasureOptions, judge};
use proptest::collection::vec;
use proptest::prelude::*;
use replay::policy;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/corpus").join(name)
}

fn listed(source: &str) -> Listed {
    Listed { source: source.to_owned(), ..Listed::default() }
}

fn fleet<'a>(policies: &[&str], origin: &'a dyn Origin) -> Fleet<'a> {
    let policies = policies.iter().map(|name| policy::parse(name).expect("a policy")).collect();
    Fleet { policies, measure: MeasureOptions::default(), origin }
}

fn rows(fleet: &Fleet<'_>, entry: &Listed) -> Vec<Row> {
    fleet.replay(entry, &|_| None).into_iter().map(|(row, _)| row).collect()
}

#[test]
fn lists_come_in_three_notations() {
    let expected = vec![
        Listed {
            source: "a b.trace".to_owned(),
            host: Some("web1".to_owned()),
            set: Some("read_ahead_kb=256 memory=4G".to_owned()),
            ..Listed::default()
        },
        Listed {
            source: "c".to_owned(),
            time: Some("noon, about".to_owned()),
            ..Listed::default()
        },
    ];
    let comma =
        "source,host,time,set\na b.trace,web1,,read_ahead_kb=256 memory=4G\nc,,\"noon, about\",\n";
    let tab = "source\thost\ttime\tset\na b.trace\tweb1\t\tread_ahead_kb=256 memory=4G\nc\t\tnoon, about\t\n";
    let lines = "{\"source\": \"a b.trace\", \"host\": \"web1\", \"set\": \"read_ahead_kb=256 memory=4G\"}\n\
                 \n{\"source\": \"c\", \"time\": \"noon, about\"}\n";
    for text in [comma, tab, lines] {
        assert_eq!(parse_list(text, "list").expect(text), expected);
    }
}

#[test]
fn a_wrong_list_is_refused_with_its_line() {
    let refused = |text: &str| parse_list(text, "list").expect_err(text).to_string();
    let all: Vec<String> = [
        "",
        "source,hots\na,b\n",
        "source,host\na,b\nc\n",
        "host\nweb1\n",
        "source,set\na,read_ahead_kb\n",
        "source,set\na,\nb,colour=red\n",
        "source,host\n,web1\n",
        "source,host\na,web1\na,web2\na,web1\n",
        "{\"source\": \"a\"}\n{\"source\": 7}\n",
        "{\"source\": \"a\"}\n{\"host\": \"b\"}\n",
        "{\"source\": \"a\"}\n{\"source\": \"b\"\n",
    ]
    .map(refused)
    .into();
    insta::assert_snapshot!(all.join("\n"));
}

/// Whatever a replay reads is in the key: the capture, its sidecar, what the sidecar names.
#[test]
fn the_key_follows_all_that_belongs_to_a_capture() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let capture = path("run.trace");
    fs::write(&capture, "capture").expect("written");
    let mut hashes = Vec::new();
    let mut look = |what: &str| {
        let content = Content::of(&capture).expect(what);
        assert!(!hashes.contains(&content.hash), "{what} does not show");
        hashes.push(content.hash);
        content.bytes
    };
    assert_eq!(look("a capture"), 7);
    fs::write(path("run.meta.toml"), "[settings]\nread_ahead_kb = 128\n").expect("written");
    assert_eq!(look("a sidecar"), 7);
    fs::write(path("run.meta.toml"), "[settings]\nread_ahead_kb = 256\n").expect("written");
    look("a setting of the sidecar");
    fs::write(path("run.meta.toml"), "join = [\"sda\"]\naccesses = \"run.ops\"\n")
        .expect("written");
    fs::write(path("sda"), "blktrace").expect("written");
    fs::write(path("run.ops"), "ops").expect("written");
    assert_eq!(look("a joined file"), 7 + 8 + 3);
    fs::write(path("sda"), "blktraces").expect("written");
    look("another joined file");
    // The same bytes, cut elsewhere.
    fs::write(&capture, "captureb").expect("written");
    fs::write(path("sda"), "lktraces").expect("written");
    look("files of other lengths");
    fs::write(path("run.ops"), "opp").expect("written");
    look("another list of accesses");
}

#[test]
fn the_key_follows_policy_settings_and_device() {
    let workload = corpus("workloads/rand64k.workload.toml").display().to_string();
    let origin = Local::beside(Path::new("list"));
    let key = |policy: &str, change: &dyn Fn(&mut MeasureOptions), set: Option<&str>| {
        let mut fleet = fleet(&[policy], &origin);
        change(&mut fleet.measure);
        let entry = Listed { set: set.map(str::to_owned), ..listed(&workload) };
        let row = rows(&fleet, &entry).remove(0);
        assert_eq!(row.error, None);
        row.key.expect("it was replayed")
    };
    let same = |_: &mut MeasureOptions| {};
    let set = |options: &mut MeasureOptions| {
        options.load.set.push(("read_ahead_kb".to_owned(), "256".to_owned()));
    };
    let clock = |options: &mut MeasureOptions| options.load.clock = Some("mono".to_owned());
    let inferred = |options: &mut MeasureOptions| options.load.allow_inferred = true;
    let lossy = |options: &mut MeasureOptions| options.allow_loss = true;
    let device = |options: &mut MeasureOptions| options.model.cpu.call_ns += 1;
    let plain = key("linux-6.18", &same, None);
    assert_eq!(plain, key("linux-6.18", &same, None));
    assert_eq!(
        key("linux-6.18", &set, None),
        key("linux-6.18", &same, Some("read_ahead_kb=256")),
        "a setting is a setting, wherever it was given"
    );
    let others = [
        key("linux-6.12", &same, None),
        key("linux-6.18", &set, None),
        key("linux-6.18", &clock, None),
        key("linux-6.18", &inferred, None),
        key("linux-6.18", &lossy, None),
        key("linux-6.18", &device, None),
    ];
    for (at, other) in others.iter().enumerate() {
        assert_ne!(*other, plain, "{at}");
        assert!(!others[..at].contains(other), "{at}");
    }
}

/// What is there is not done again, even though it is looked for under a label that has changed.
#[test]
fn what_is_there_is_not_done_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.workload.toml");
    fs::copy(corpus("workloads/rand64k.workload.toml"), &path).expect("copied");
    let origin = Local { folder: folder.path().to_owned() };
    let fleet = fleet(&["linux-6.12", "linux-6.18"], &origin);
    let entry = listed("a.workload.toml");
    let mut results = Results::default();
    for row in rows(&fleet, &entry) {
        results.add(row).expect("new");
    }
    let made = |entry: &Listed, results: &Results| -> Vec<Made> {
        let again = fleet.replay(entry, &|row| results.answer(row).cloned());
        again.into_iter().map(|(_, made)| made).collect()
    };
    assert_eq!(made(&entry, &results), [Made::Before; 2]);
    let kernel = Listed { kernel: Some("6.18".to_owned()), ..entry.clone() };
    assert_eq!(made(&kernel, &results), [Made::Now; 2]);
    let mut text = fs::read_to_string(&path).expect("read");
    text += "\n# another content\n";
    fs::write(&path, text).expect("written");
    assert_eq!(made(&entry, &results), [Made::Now; 2]);
}

/// Sources with tags, which count how often they are fetched.
struct Tagged {
    tags: String,
    fetched: AtomicU64,
}

impl Origin for Tagged {
    fn tags(&self, _: &str) -> Result<Option<String>, String> {
        Ok(Some(self.tags.clone()))
    }

    fn fetch(&self, source: &str) -> Result<Fetched, String> {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        Ok(Fetched { path: corpus(source), guard: None })
    }
}

#[test]
fn a_source_whose_tags_are_the_same_is_not_fetched_again() {
    let tagged = |tags: &str| Tagged { tags: tags.to_owned(), fetched: AtomicU64::new(0) };
    let entry = listed("workloads/rand64k.workload.toml");
    let first = tagged("v1");
    let mut results = Results::default();
    for row in rows(&fleet(&["linux-6.18"], &first), &entry) {
        results.add(row).expect("new");
    }
    let again = |origin: &Tagged, policies: &[&str]| {
        let made = fleet(policies, origin).replay(&entry, &|row| results.answer(row).cloned());
        let made: Vec<Made> = made.into_iter().map(|(_, made)| made).collect();
        (made, origin.fetched.load(Ordering::Relaxed))
    };
    assert_eq!(again(&tagged("v1"), &["linux-6.18"]), (vec![Made::Before], 0));
    // Fetched, and found to be the same.
    assert_eq!(again(&tagged("v2"), &["linux-6.18"]), (vec![Made::Before], 1));
    let both = vec![Made::Before, Made::Now];
    assert_eq!(again(&tagged("v1"), &["linux-6.18", "linux-6.12"]), (both, 1));
}

/// Sources that bring a bug to light.
struct Buggy;

impl Origin for Buggy {
    fn fetch(&self, source: &str) -> Result<Fetched, String> {
        assert!(!source.contains("bug"), "planted in {source}");
        Ok(Fetched { path: corpus(source), guard: None })
    }
}

#[test]
fn a_bug_costs_one_source() {
    let fleet = fleet(&["linux-6.18"], &Buggy);
    let row = rows(&fleet, &listed("bug")).remove(0);
    assert_eq!(row.error_kind.as_deref(), Some("bug"));
    assert_eq!(row.error.as_deref(), Some("a bug: planted in bug"));
    assert_eq!(rows(&fleet, &listed("workloads/rand64k.workload.toml")).remove(0).error, None);
}

#[test]
fn every_entry_is_handed_out_once_until_one_fails() {
    let fleet = fleet(&["linux-6.18"], &Buggy);
    let list: Vec<Listed> = (0..50).map(|at| listed(&format!("none{at}"))).collect();
    let seen = std::sync::Mutex::new(Vec::new());
    let each = |rows: Vec<(Row, Made)>| {
        seen.lock().expect("no panic").push(rows[0].0.source.clone());
        Ok::<(), ()>(())
    };
    assert_eq!(fleet.replay_all(&list, &|_| None, &each), Ok(()));
    let mut seen = seen.into_inner().expect("no panic");
    seen.sort();
    let mut all: Vec<String> = list.iter().map(|entry| entry.source.clone()).collect();
    all.sort();
    assert_eq!(seen, all);
    assert_eq!(fleet.replay_all(&list, &|_| None, &|_| Err("full")), Err("full"));
}

/// A row that a replay could have given, of few different sources, so that some are the same.
fn row() -> impl Strategy<Value = Row> {
    let text =
        |names: &'static [&'static str]| proptest::sample::select(names).prop_map(str::to_owned);
    let labels =
        (text(&["a", "b", "c"]), proptest::option::of(text(&["web1", "web2"])), text(&["p", "q"]));
    let error = proptest::option::weighted(0.3, text(&["missing", "corrupt"]));
    (labels, error, vec(0..5_u64, 0..4), vec((0..1_u64 << 40, 1..9_u64), 0..5)).prop_map(
        |((source, host, policy), error, orders, waits)| {
            let mut counts = WaitCounts::default();
            for (wait_ns, reads) in &waits {
                counts.add(*wait_ns, *reads);
            }
            let pairs =
                counts.iter().map(|(wait, reads)| (wait.cast_signed(), reads.cast_signed()));
            let (read_wait_ns, read_wait_counts) = pairs.unzip();
            let orders: Vec<i64> = orders.into_iter().map(u64::cast_signed).collect();
            // The same is always answered in the same way.
            let key = error.is_none().then(|| format!("{source} under {policy}"));
            let folios = Some(orders.iter().sum());
            let read_wait_ns_max = waits.iter().map(|(wait_ns, _)| wait_ns.cast_signed()).max();
            let (kernel, fidelity) = (host.clone(), Some("exact".to_owned()));
            Row {
                source,
                host,
                kernel,
                policy,
                error,
                key,
                folios_by_order: orders,
                folios,
                fidelity,
                read_wait_ns,
                read_wait_counts,
                read_wait_ns_max,
                ..Row::default()
            }
        },
    )
}

fn results(rows: Vec<Row>) -> Results {
    let mut results = Results::default();
    for row in rows {
        results.add(row).expect("keys are of the slot");
    }
    results
}

fn tally(rows: &[Row]) -> Tally {
    let mut tally = Tally::default();
    for row in rows {
        tally.merge(Tally::of(row.clone()));
    }
    tally
}

fn both(a: &Tally, b: &Tally) -> Tally {
    let mut sum = a.clone();
    sum.merge(b.clone());
    sum
}

proptest! {
    #[test]
    fn putting_results_together_is_order_independent(
        a in vec(row(), 0..12), b in vec(row(), 0..12), c in vec(row(), 0..12)
    ) {
        let merge = |a: Results, b: Results| a.merge(b).expect("keys are of the slot");
        let [a, b, c] = [a, b, c].map(results);
        prop_assert_eq!(merge(a.clone(), b.clone()), merge(b.clone(), a.clone()));
        prop_assert_eq!(
            merge(merge(a.clone(), b.clone()), c.clone()),
            merge(a.clone(), merge(b, c))
        );
        prop_assert_eq!(merge(a.clone(), Results::default()), a.clone());
        prop_assert_eq!(merge(Results::default(), a.clone()), a.clone());
        prop_assert_eq!(merge(a.clone(), a.clone()), a);
    }

    #[test]
    fn adding_up_is_order_independent(
        a in vec(row(), 0..12), b in vec(row(), 0..12), c in vec(row(), 0..12)
    ) {
        let whole = tally(&[a.clone(), b.clone(), c.clone()].concat());
        let [a, b, c] = [a, b, c].map(|rows| tally(&rows));
        prop_assert_eq!(both(&a, &b), both(&b, &a));
        prop_assert_eq!(both(&both(&a, &b), &c), both(&a, &both(&b, &c)));
        prop_assert_eq!(both(&a, &Tally::default()), a.clone());
        prop_assert_eq!(both(&Tally::default(), &a), a.clone());
        prop_assert_eq!(both(&both(&a, &b), &c), whole);
    }

    #[test]
    fn merged_waits_are_those_of_all_reads(waits in vec((0..u64::MAX, 1..9_u64), 1..60), at in 0..60_usize) {
        let (left, right) = waits.split_at(at.min(waits.len()));
        let count = |waits: &[(u64, u64)]| {
            let mut counts = WaitCounts::default();
            for (wait_ns, reads) in waits {
                counts.add(*wait_ns, *reads);
            }
            counts
        };
        let mut merged = count(left);
        merged.merge(&count(right));
        prop_assert_eq!(&merged, &count(&waits));
        let mut each: Vec<u64> =
            waits.iter().flat_map(|(wait_ns, reads)| vec![*wait_ns; *reads as usize]).collect();
        each.sort_unstable();
        for percent in [1, 50, 99, 100] {
            let exact = each[(each.len() * percent).div_ceil(100) - 1];
            let found = merged.percentile(percent as u64);
            prop_assert!(found <= exact && exact - found <= exact / 1024, "{found} for {exact}");
            prop_assert!(exact >= 2048 || found == exact);
        }
    }

    #[test]
    fn results_come_back_from_a_table(rows in vec(row(), 0..12)) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.parquet");
        let results = results(rows);
        results.write(&path).expect("written");
        prop_assert_eq!(Results::read(&path).expect("read"), results);
    }
}

#[test]
fn results_of_different_keys_do_not_mix() {
    let one = Row { key: Some("1".to_owned()), source: "a".to_owned(), ..Row::default() };
    let other = Row { key: Some("2".to_owned()), ..one.clone() };
    for (a, b) in [(&one, &other), (&other, &one)] {
        let merged = results(vec![a.clone()]).merge(results(vec![b.clone()]));
        assert!(
            merged.expect_err("they differ").to_string().starts_with("a has two results under")
        );
    }
    let mut replaced = results(vec![one]);
    replaced.replace(other.clone());
    replaced.replace(Row { error: Some("gone".to_owned()), key: None, ..other.clone() });
    assert_eq!(replaced, results(vec![other]));
}

/// Sides of results are those that the gate measures itself.
#[test]
fn the_gate_judges_results_like_sources() {
    let name = "workloads/seq1m_after4k_ms512.workload.toml";
    let origin = Local { folder: corpus("") };
    let policies = ["linux-6.18", "linux-7.3+align-async-window-v2"];
    let results = results(rows(&fleet(&policies, &origin), &listed(name)));
    let [mainline, aligned] = &sides(&results, None)[..] else { panic!("a side per policy") };
    let measured = {
        let file = analysis::gate::SourceFile { key: name.to_owned(), path: corpus(name) };
        let policies: Vec<_> =
            policies.iter().map(|name| policy::parse(name).expect("a policy")).collect();
        analysis::gate::measure(&[file], &policies, &MeasureOptions::default())
    };
    assert_eq!([mainline, aligned], [&measured[0], &measured[1]]);
    assert_eq!(judge(aligned, mainline, &Budgets::default()).verdict, Verdict::Regressed);
}

#[test]
fn a_group_is_judged_only_if_it_is_complete() {
    let origin = Local { folder: corpus("workloads") };
    let policies = ["linux-6.18", "linux-7.3+align-async-window-v2"];
    let fleet = fleet(&policies, &origin);
    let entry = |source: &str, host: &str| Listed { host: Some(host.to_owned()), ..listed(source) };
    let list = [
        entry("seq1m_after4k_ms512.workload.toml", "web1"),
        entry("rand64k.workload.toml", "web1"),
        entry("rand64k.workload.toml", "web2"),
        entry("none.workload.toml", "web3"),
        entry("rand64k.workload.toml", "web3"),
    ];
    let results = results(list.iter().flat_map(|entry| rows(&fleet, entry)).collect());
    let sides = sides(&results, Some(Group::Host));
    let report = judge(&sides[1], &sides[0], &Budgets::default());
    let verdicts: Vec<_> =
        report.sources.iter().map(|source| (source.source.as_str(), source.verdict)).collect();
    assert_eq!(
        verdicts,
        [("web1", Verdict::Regressed), ("web2", Verdict::Pass), ("web3", Verdict::BadInput)]
    );
    let reason = report.sources[2].reason.as_deref().expect("a refusal");
    assert!(reason.starts_with("1 of 2 sources gave no figures"), "{reason}");

    let mut options = FleetOptions { by: Group::Host, metric: Metric::DeviceReads, first: None };
    let report = FleetReport::new("results", results.rows().cloned(), &options);
    let worst: Vec<_> = report.policies[0].groups.iter().map(|group| &*group.name).collect();
    assert_eq!(worst[0], "web1");
    assert_eq!(report.policies[0].all.sources, 4);
    assert_eq!((report.failed.len(), report.policies[0].all.failed), (1, 1));

    // The policy that is named comes first, and the other one is held against it.
    options.first = Some(report.policies[1].policy.clone());
    let turned = FleetReport::new("results", results.rows().cloned(), &options);
    assert_eq!(turned.policies[0].policy, report.policies[1].policy);
    let worse: Vec<_> = turned.policies.iter().map(|one| one.all.worse_percent).collect();
    assert!(worse[0].is_none() && worse[1].is_some(), "{worse:?}");
}
