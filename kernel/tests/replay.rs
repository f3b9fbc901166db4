//! Our own small tree is cut, built and replayed, whole and edited.

mod common;

use std::num::NonZeroU32;
use std::path::Path;
use std::process::Command;

use common::{Copy, build, fixture, options, sequential, shown, worker};
use insta::assert_snapshot;
use kernel::{
    Access, Advice, Built, Completion, Decided, Error, InstanceSettings, Isolation, Mapping,
    Options, Session, Stops, TaskId, Tree,
};
use traces::units::{ByteOffset, Order, PageIndex};

#[test]
fn reads_lead_to_windows_folios_and_device_reads() {
    let built = build(&fixture()).unwrap();
    assert_eq!(built.version_guess(), Some("9.1.0-rc2"));
    let session = Session::start(&built, &worker()).unwrap();
    let settings =
        InstanceSettings { i_size: 64 << 10, ra_pages: 6, ..InstanceSettings::default() };
    let mut instance = session.instance(settings).unwrap();
    let file = instance.open().unwrap();
    let accesses = [
        Access::read(file, ByteOffset(0), 4096),
        Access::read(file, ByteOffset(4096), 5000),
        Access::read(file, ByteOffset(40_000), 1 << 20),
    ];
    let decisions = instance.replay(&accesses).unwrap();
    assert_snapshot!(shown(decisions), @r#"
    0: Sync 0 +1
    0: folio 0 order 2 marked
    0: folio 4 order 1
    0: read 0 +6
    0: window 0 +6 async 6 order -
    0: Async 0 +1
    0: folio 6 order 1 marked
    0: folio 8 order 1
    0: folio 10 order 1
    0: read 6 +6
    0: window 6 +6 async 6 order -
    2: Sync 12 +254
    2: folio 12 order 2 marked
    2: read 12 +4
    2: window 12 +4 async 4 order -
    2: Async 12 +254
    2: window 16 +0 async 0 order -
    "#);
    let of_second: Vec<_> = decisions.of(1).collect();
    assert_eq!(of_second.len(), decisions.iter().filter(|d| d.access == 1).count());
}

#[test]
fn advice_faults_evictions_and_cached_folios() {
    let session = Session::start(&build(&fixture()).unwrap(), &worker()).unwrap();
    let settings = InstanceSettings { i_size: 1 << 20, ra_pages: 4, ..InstanceSettings::default() };
    let mut instance = session.instance(settings).unwrap();
    let file = instance.open().unwrap();
    let touch = |page| Access::touch(file, PageIndex(page), Mapping::default());
    let accesses = [
        Access::cached(PageIndex(5), Order(2)),
        Access::read(file, ByteOffset(4 << 12), 4096),
        Access::advise(file, Advice::Random, ByteOffset(0), 0),
        Access::read(file, ByteOffset(20 << 12), 8192),
        Access::advise(file, Advice::WillNeed, ByteOffset(30 << 12), 12_000),
        touch(30),
        touch(31),
        Access::advise(file, Advice::DontNeed, ByteOffset(0), 1 << 20),
        Access::evict(PageIndex(31)),
        touch(31),
        Access::readahead(file, ByteOffset(40 << 12), 4096),
        Access::close(file),
    ];
    assert_snapshot!(shown(instance.replay(&accesses).unwrap()), @r#"
    3: Forced 20 +2
    3: folio 20 order 0
    3: folio 21 order 0
    3: read 20 +2
    3: window 20 +2 async 2 order -
    4: Forced 30 +3
    4: folio 30 order 0
    4: folio 31 order 0
    4: folio 32 order 0
    4: read 30 +3
    5: fault 30 major false
    5: mapped 20 +2
    5: mapped 30 +2
    7: dropped 4 order 2
    7: dropped 32 order 0
    9: fault 31 major true
    9: Forced 31 +1
    9: folio 31 order 0
    9: read 31 +1
    9: window 31 +1 async 1 order -
    9: mapped 31 +1
    10: Forced 40 +1
    10: folio 40 order 0
    10: read 40 +1
    "#);
}

#[test]
fn a_read_path_of_the_callers_own() {
    let session = Session::start(&build(&fixture()).unwrap(), &worker()).unwrap();
    let settings = InstanceSettings { i_size: 1 << 20, ra_pages: 4, ..InstanceSettings::default() };
    let mut instance = session.instance(settings).unwrap();
    let file = instance.open().unwrap();
    let accesses = [
        Access::sync_ra(file, PageIndex(8), 2),
        Access::async_ra(file, PageIndex(8), 2),
        Access::prev_pos(file, ByteOffset(10 << 12)),
        Access::async_ra(file, PageIndex(100), 1),
        Access::ra_pages(file, 8),
        Access::async_ra(file, PageIndex(12), 1),
    ];
    assert_snapshot!(shown(instance.replay(&accesses).unwrap()), @r#"
    0: Sync 8 +2
    0: folio 8 order 2 marked
    0: read 8 +4
    0: window 8 +4 async 4 order -
    1: Async 8 +2
    1: folio 12 order 2 marked
    1: read 12 +4
    1: window 12 +4 async 4 order -
    5: Async 12 +1
    5: folio 16 order 2 marked
    5: folio 20 order 2
    5: read 16 +8
    5: window 16 +8 async 8 order -
    "#);
}

#[test]
fn a_worker_decides_what_this_process_decides() {
    let built = build(&fixture()).unwrap();
    let here = sequential(&Session::start(&built, &Isolation::InProcess).unwrap(), 16).unwrap();
    let there = sequential(&Session::start(&built, &worker()).unwrap(), 16).unwrap();
    assert!(!here.is_empty());
    assert_eq!(shown(&here), shown(&there));
}

#[test]
fn more_accesses_and_decisions_than_the_shared_memory_holds() {
    let built = build(&fixture()).unwrap();
    let replay = |isolation: &Isolation| {
        let session = Session::start(&built, isolation).unwrap();
        let settings =
            InstanceSettings { i_size: 100 << 20, ra_pages: 0, ..InstanceSettings::default() };
        let mut instance = session.instance(settings).unwrap();
        let file = instance.open().unwrap();
        let mut accesses: Vec<_> =
            (0..20_000).map(|page| Access::read(file, PageIndex(page).offset(), 4096)).collect();
        accesses.push(Access::evict(PageIndex(0)));
        accesses.push(Access::read(file, ByteOffset(0), 4096));
        shown(instance.replay(&accesses).unwrap())
    };
    let (here, there) = (replay(&Isolation::InProcess), replay(&worker()));
    assert_eq!(here.lines().count(), 4 * 20_001);
    assert!(here == there, "the worker differs");
}

#[test]
fn reads_stay_in_flight_until_waited_for() {
    let session = Session::start(&build(&fixture()).unwrap(), &worker()).unwrap();
    let settings = InstanceSettings {
        i_size: 1 << 20,
        ra_pages: 8,
        completion: Completion::WhenWaited,
        ..InstanceSettings::default()
    };
    let mut instance = session.instance(settings).unwrap();
    let file = instance.open().unwrap();
    let ask = Access::advise(file, Advice::WillNeed, ByteOffset(0), 8 << 12);
    let touch = |page| Access::touch(file, PageIndex(page), Mapping::default());
    // Pages in flight are not mapped around a fault; completed ones are.
    let accesses = [
        ask,
        Access::complete(PageIndex(2), 2),
        touch(3),
        Access::complete(PageIndex(0), 8),
        touch(6),
    ];
    assert_snapshot!(shown(instance.replay(&accesses).unwrap()), @r#"
    0: Forced 0 +8
    0: folio 0 order 0
    0: folio 1 order 0
    0: folio 2 order 0
    0: folio 3 order 0
    0: folio 4 order 0
    0: folio 5 order 0
    0: folio 6 order 0
    0: folio 7 order 0
    0: read 0 +8
    2: fault 3 major false
    2: mapped 2 +2
    4: fault 6 major false
    4: mapped 0 +2
    4: mapped 4 +4
    "#);
}

fn small_windows() -> InstanceSettings {
    let completion = Completion::WhenTold;
    InstanceSettings { i_size: 1 << 20, ra_pages: 4, completion, ..InstanceSettings::default() }
}

#[test]
fn tasks_wait_and_are_held() {
    let session = Session::start(&build(&fixture()).unwrap(), &worker()).unwrap();
    let mut instance = session.instance(small_windows()).unwrap();
    let file = instance.open().unwrap();
    let (one, two) = (TaskId(0), TaskId(7));
    let read = |page| Access::read(file, PageIndex(page).offset(), 10 << 12);
    let events = Stops { at_triggers: true, at_batches: true, ..Stops::NONE };
    let before = |until| Stops { before_insertions: true, until: PageIndex(until), ..Stops::NONE };
    let ask = Access::advise(file, Advice::WillNeed, ByteOffset(40 << 12), 4 << 12);
    let accesses = [
        read(0).in_task(one, Stops { after_copies: true, ..Stops::NONE }),
        read(0).in_task(two, events),
        Access::complete(PageIndex(0), 4),
        Access::go_on(one, Stops { after_copies: true, ..Stops::NONE }),
        Access::go_on(two, Stops { until: PageIndex(1), ..events }),
        Access::complete(PageIndex(4), 4),
        Access::go_on(one, Stops::NONE),
        Access::evict(PageIndex(8)),
        Access::go_on(one, Stops::NONE),
        ask.in_task(one, before(42)),
        Access::go_on(one, Stops::NONE),
    ];
    assert_snapshot!(shown(instance.replay(&accesses).unwrap()), @"
    0: Sync 0 +10
    0: folio 0 order 2 marked
    0: read 0 +4
    0: window 0 +4 async 4 order -
    0: Async 0 +10
    0: folio 4 order 2 marked
    0: read 4 +4
    0: window 4 +4 async 4 order -
    0: Waits { index: PageIndex(0), order: Order(2) }
    1: Waits { index: PageIndex(0), order: Order(2) }
    3: Copied { to: ByteOffset(16384), folios: 1 }
    4: Batch { start: PageIndex(0), pages: 4 }
    6: Async 4 +6
    6: folio 8 order 2 marked
    6: read 8 +4
    6: window 8 +4 async 4 order -
    6: Copied { to: ByteOffset(32768), folios: 1 }
    6: Async 8 +2
    6: folio 12 order 2 marked
    6: read 12 +4
    6: window 12 +4 async 4 order -
    6: Waits { index: PageIndex(8), order: Order(2) }
    8: Copied { to: ByteOffset(40960), folios: 1 }
    8: Returned { to: ByteOffset(40960) }
    9: PrevPos { pos: 40960 }
    9: Forced 40 +4
    9: folio 40 order 0
    9: folio 41 order 0
    9: Held { index: PageIndex(42) }
    10: folio 42 order 0
    10: folio 43 order 0
    10: read 40 +4
    10: Returned { to: ByteOffset(0) }
    ");
}

#[test]
fn reads_are_held_to_what_is_foretold() {
    let built = build(&fixture()).unwrap();
    for isolation in [worker(), Isolation::InProcess] {
        let session = Session::start(&built, &isolation).unwrap();
        let foretold = |page, count, folios| {
            let mut instance = session.instance(small_windows()).unwrap();
            let file = instance.open().unwrap();
            let read = |page, count| Access::read(file, PageIndex(page).offset(), count);
            let task = |page, count| read(page, count).in_task(TaskId(0), Stops::NONE);
            let accesses = [
                Access::cached(PageIndex(0), Order(2)),
                Access::cached(PageIndex(4), Order(0)),
                // Leaves a marked folio at page 12.
                read(8, 1),
                Access::complete(PageIndex(0), 64),
                task(page, count).foretold(NonZeroU32::new(folios).unwrap()),
                task(1, 100),
            ];
            instance.replay(&accesses).cloned()
        };
        let decisions = foretold(3, 5000, 2).unwrap();
        assert_eq!(decisions.of(4).count(), 0, "it is known");
        assert_eq!(decisions.of(5).count(), 2);
        // From one folio less or more, beyond what is cached, and on to a marked folio.
        for (page, count, folios) in [(3, 5000, 1), (3, 5000, 3), (3, 3 << 12, 2), (8, 8 << 12, 2)]
        {
            match foretold(page, count, folios) {
                Err(Error::NotForetold { access: 4, .. }) => {}
                other => panic!("{folios} folios, {count} bytes at page {page}: {other:?}"),
            }
        }
        // Only instances have ended.
        assert!(foretold(8, 4 << 12, 1).is_ok());
    }
}

#[test]
fn several_builds_instances_and_threads_at_once() {
    let other = Copy::of(&fixture());
    other.edit("mm/readahead.c", |text| text.replace("WINDOW_ORDER 2", "WINDOW_ORDER 3"));
    let builds = [build(&fixture()).unwrap(), build(other.path()).unwrap()];
    assert_ne!(builds[0].id(), builds[1].id());
    let expected: Vec<String> = builds
        .iter()
        .map(|built| shown(&sequential(&Session::start(built, &worker()).unwrap(), 16).unwrap()))
        .collect();
    assert_ne!(expected[0], expected[1]);
    std::thread::scope(|scope| {
        for (built, expected) in builds.iter().zip(&expected) {
            let session = Session::start(built, &Isolation::InProcess).unwrap();
            for _ in 0..2 {
                let session = session.clone();
                scope.spawn(move || {
                    assert_eq!(&shown(&sequential(&session, 16).unwrap()), expected);
                });
            }
        }
    });
}

#[test]
fn replays_can_move_between_threads() {
    fn sends<T: Send>() {}
    fn shares<T: Send + Sync>() {}
    sends::<kernel::Instance>();
    shares::<Session>();
    shares::<Built>();
}

#[test]
fn a_second_build_comes_from_the_cache_and_can_show_its_folder() {
    let cache = tempfile::tempdir().unwrap();
    let options = Options { cache: Some(cache.path().to_owned()), ..options() };
    let tree = Tree::parse(&fixture().display().to_string()).unwrap();
    let first = Built::new(&tree, &options).unwrap();
    assert!(!first.is_from_cache() && first.folder().is_none());
    let second = Built::new(&tree, &Options { keep: true, ..options }).unwrap();
    assert!(second.is_from_cache());
    assert_eq!(first.id(), second.id());
    let cut = std::fs::read_to_string(second.folder().unwrap().join("mm/filemap.c")).unwrap();
    assert_eq!(second.replaced(), [""; 0]);
    assert!(cut.contains("filemap_read(") && !cut.contains("nothing_at_all"), "{cut}");
}

fn git(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_revision_is_read_without_checking_it_out() {
    let copy = Copy::of(&fixture());
    git(copy.path(), &["init", "--quiet"]);
    git(copy.path(), &["add", "."]);
    git(copy.path(), &["commit", "--quiet", "-m", "first"]);
    copy.edit("mm/readahead.c", |text| text.replace("WINDOW_ORDER 2", "WINDOW_ORDER 3"));
    git(copy.path(), &["commit", "--quiet", "-a", "-m", "second"]);
    copy.edit("mm/readahead.c", |_| "not C".to_owned());

    let at = |revision: &str| {
        let spec = format!("{}@{revision}", copy.path().display());
        Built::new(&Tree::parse(&spec).unwrap(), &options())
    };
    let parent = at("HEAD~1").unwrap();
    assert_eq!(parent.id(), build(&fixture()).unwrap().id());
    assert_ne!(at("HEAD").unwrap().id(), parent.id());
    assert!(matches!(at("nowhere"), Err(kernel::Error::NoRevision { .. })));
    let text = std::fs::read_to_string(copy.path().join("mm/readahead.c")).unwrap();
    assert_eq!(text, "not C");
}

#[test]
fn a_source_package_is_read_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let inner = {
        let packed = liblzma::write::XzEncoder::new(Vec::new(), 1);
        let mut tar = tar::Builder::new(packed);
        tar.append_dir_all("linux-source-9.1", fixture()).unwrap();
        tar.into_inner().unwrap().finish().unwrap()
    };
    let archive = folder.path().join("linux-source-9.1.tar.xz");
    std::fs::write(&archive, &inner).unwrap();
    let expected = build(&fixture()).unwrap();
    assert_eq!(build(&archive).unwrap().id(), expected.id());

    let mut data = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(inner.len() as u64);
    header.set_mode(0o644);
    data.append_data(&mut header, "./usr/src/linux-source-9.1.tar.xz", &*inner).unwrap();
    let data = data.into_inner().unwrap();
    let deb = folder.path().join("linux-source-9.1_9.1_all.deb");
    let mut members = ar::Builder::new(std::fs::File::create(&deb).unwrap());
    for (name, bytes) in [("debian-binary", &b"2.0\n"[..]), ("data.tar", &data)] {
        members.append(&ar::Header::new(name.into(), bytes.len() as u64), bytes).unwrap();
    }
    assert_eq!(build(&deb).unwrap().id(), expected.id());
}

#[test]
fn a_kernel_without_huge_pages_has_only_single_pages() {
    let tree = Tree::parse(&fixture().display().to_string()).unwrap();
    let built = Built::new(&tree, &Options { without_thp: true, ..options() }).unwrap();
    let decisions = sequential(&Session::start(&built, &worker()).unwrap(), 1).unwrap();
    assert!(decisions.iter().any(|d| matches!(d.what, Decided::Folio { .. })));
    let large = |d: Decided| matches!(d, Decided::Folio { order, .. } if order.0 > 0);
    assert!(!decisions.iter().any(|d| large(d.what)));
}

#[test]
fn places_that_are_no_tree() {
    let folder = tempfile::tempdir().unwrap();
    let error = |spec: String| {
        let built = Tree::parse(&spec).and_then(|tree| Built::new(&tree, &options()));
        built.unwrap_err().to_string().replace(&folder.path().display().to_string(), "T")
    };
    assert_snapshot!(error(folder.path().join("nowhere").display().to_string()), @"no kernel tree at T/nowhere: expected a directory, REPOSITORY@REVISION, or a linux-source package");
    assert_snapshot!(error(folder.path().display().to_string()), @"T has no mm/readahead.c: is it a kernel tree?");
    assert_snapshot!(error(format!("{}@--help", folder.path().display())), @"`--help` cannot be a revision");
}
