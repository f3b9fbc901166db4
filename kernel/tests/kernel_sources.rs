//! Real kernel trees. They are not ours to keep here, so these tests run when asked:
//!
//! ```text
//! RAREPLAY_KERNEL_TREES=/usr/src/linux-source-6.1:/home/me/linux cargo test -p rareplay-kernel --test kernel_sources -- --ignored
//! ```
//!
//! `RAREPLAY_ALIGN_PATCH` may name the patch "mm/readahead: align the async window in
//! `page_cache_ra_order()`", version 2, for its published figures.

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Copy, build, impatient_worker, options, sequential, shown, worker};
use kernel::{
    Access, Built, Decided, Error, Fault, InstanceSettings, Isolation, Options, Session, Tree,
};
use traces::units::ByteOffset;

const READAHEAD: &str = "mm/readahead.c";
const PAGEMAP: &str = "include/linux/pagemap.h";

fn trees() -> Vec<PathBuf> {
    let list = std::env::var_os("RAREPLAY_KERNEL_TREES").expect("RAREPLAY_KERNEL_TREES");
    std::env::split_paths(&list).collect()
}

/// Kernels since 6.16, which end async windows on natural boundaries.
fn is_mainline(built: &Built) -> bool {
    let release = built.version_guess().unwrap_or_default();
    let mut numbers = release.split('.').map(|n| n.parse().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(16))
}

/// Reads of one size over 512 MiB, `read_ahead_kb` 128, after one of `first` bytes.
struct Row {
    first: u64,
    read: u64,
    max_sectors_kb: u64,
    by_order: [u64; 10],
    device_reads: u64,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const fn row(
    first: u64,
    read: u64,
    max_sectors_kb: u64,
    by_order: [u64; 10],
    device_reads: u64,
) -> Row {
    Row { first, read, max_sectors_kb, by_order, device_reads }
}

const SAME: [Row; 2] = [
    row(0, MIB, 512, [128, 0, 32, 0, 8, 0, 2, 1020, 0, 0], 1024),
    row(0, 64 * KIB, 512, [32, 0, 8, 0, 2, 4093, 0, 0, 0, 0], 4096),
];

const MAINLINE: [Row; 5] = [
    row(4096, MIB, 512, [516, 768, 3067, 1278, 2554, 1024, 514, 0, 0, 0], 3327),
    row(4096, 512 * KIB, 256, [1028, 1536, 5115, 5114, 2048, 1026, 0, 0, 0, 0], 6145),
    row(4096, MIB, 1024, [516, 256, 267, 260, 259, 258, 257, 766, 0, 0], 1027),
    row(4096, MIB, 2048, [516, 256, 267, 260, 259, 258, 257, 766, 0, 0], 1027),
    row(4096, 3 * MIB, 2048, [8, 4, 10, 9, 8, 6, 7, 7, 7, 249], 271),
];

/// Captured on Debian's 6.1.192 and 6.12.117.
const LINUX_6_1: [Row; 5] = [
    row(4096, MIB, 512, [0, 0, 2060, 1024, 7165, 0, 0, 0, 0, 0], 1026),
    row(4096, MIB, 2048, [1044, 0, 16559, 132, 1969, 0, 4, 0, 121, 0], 518),
    row(4096, 3 * MIB, 2048, [0, 0, 534, 257, 7930, 0, 0, 0, 0, 0], 259),
    row(0, MIB, 512, [0, 0, 32, 0, 8, 0, 2, 1021, 0, 0], 1024),
    row(0, 64 * KIB, 512, [0, 0, 8, 0, 2, 4094, 0, 0, 0, 0], 4096),
];

const LINUX_6_12: [Row; 4] = [
    row(4096, MIB, 512, [0, 0, 2056, 1026, 7165, 0, 0, 0, 0, 0], 1029),
    row(4096, MIB, 1024, [268, 388, 8661, 4059, 1496, 210, 4, 0, 125, 0], 520),
    row(0, MIB, 512, [0, 0, 32, 0, 8, 0, 2, 1021, 0, 0], 1024),
    row(0, 64 * KIB, 512, [0, 0, 8, 0, 2, 4094, 0, 0, 0, 0], 4096),
];

const ALIGNED: [Row; 5] = [
    row(4096, MIB, 512, [4, 0, 5, 1, 2, 2, 4, 1021, 0, 0], 1029),
    row(4096, 512 * KIB, 256, [4, 0, 3, 2, 2, 4, 2045, 0, 0, 0], 2053),
    row(4096, MIB, 1024, [4, 0, 5, 1, 2, 2, 4, 1021, 0, 0], 1028),
    row(4096, MIB, 2048, [4, 0, 5, 1, 2, 2, 4, 1021, 0, 0], 1028),
    row(4096, 3 * MIB, 2048, [4, 0, 5, 1, 4, 1, 2, 2, 6, 252], 263),
];

fn check_row(session: &Session, row: &Row) {
    const FILE: u64 = 512 * MIB;
    let io_pages = row.max_sectors_kb / 4;
    let settings =
        InstanceSettings { i_size: FILE, io_pages: io_pages as u32, ..InstanceSettings::default() };
    let mut instance = session.instance(settings).unwrap();
    let file = instance.open().unwrap();
    let rest = (row.first..FILE).step_by(row.read as usize);
    let mut reads: Vec<_> = rest.map(|pos| Access::read(file, ByteOffset(pos), row.read)).collect();
    if row.first > 0 {
        reads.insert(0, Access::read(file, ByteOffset(0), row.first));
    }
    let (mut by_order, mut device_reads) = ([0; 10], 0);
    for decision in instance.replay(&reads).unwrap().iter() {
        match decision.what {
            Decided::Folio { order, .. } => by_order[usize::from(order.0)] += 1,
            Decided::DeviceRead { pages, .. } => {
                device_reads += u64::from(pages).div_ceil(io_pages);
            }
            _ => {}
        }
    }
    let what = format!("{} after {}, max_sectors_kb {}", row.read, row.first, row.max_sectors_kb);
    assert_eq!((by_order, device_reads), (row.by_order, row.device_reads), "{what}");
}

#[test]
#[ignore = "needs kernel sources"]
fn published_figures_of_mainline_and_of_the_align_patch() {
    for tree in trees() {
        let built = build(&tree).unwrap();
        if !is_mainline(&built) {
            continue;
        }
        println!("{} {:?}", built.describe(), built.version_guess());
        let session = Session::start(&built, &worker()).unwrap();
        MAINLINE.iter().chain(&SAME).for_each(|row| check_row(&session, row));

        let Some(patch) = std::env::var_os("RAREPLAY_ALIGN_PATCH") else { continue };
        let options = Options { patch: Some(patch.into()), ..options() };
        let tree = Tree::parse(&tree.display().to_string()).unwrap();
        let built = Built::new(&tree, &options).unwrap();
        println!("{}: {}", built.describe(), built.notes().join(", "));
        let session = Session::start(&built, &worker()).unwrap();
        ALIGNED.iter().chain(&SAME).for_each(|row| check_row(&session, row));
    }
}

/// Two 64 KiB streams on one open file, in turns: what a hole search sees of large folios decides.
fn interleaved(session: &Session) -> [u64; 10] {
    const FILE: u64 = 512 * MIB;
    let settings = InstanceSettings { i_size: FILE, ..InstanceSettings::default() };
    let mut instance = session.instance(settings).unwrap();
    let file = instance.open().unwrap();
    let starts = (0..FILE / 4).step_by(64 << 10).flat_map(|pos| [pos, pos + FILE / 2]);
    let reads: Vec<_> = starts.map(|pos| Access::read(file, ByteOffset(pos), 64 * KIB)).collect();
    let mut by_order = [0; 10];
    for decision in instance.replay(&reads).unwrap().iter() {
        if let Decided::Folio { order, .. } = decision.what {
            by_order[usize::from(order.0)] += 1;
        }
    }
    by_order
}

#[test]
#[ignore = "needs kernel sources"]
fn captured_figures_of_each_generation() {
    for tree in trees() {
        let built = build(&tree).unwrap();
        let release = built.version_guess().unwrap_or_default().to_owned();
        let session = Session::start(&built, &worker()).unwrap();
        let (rows, streams): (&[Row], _) = if release.starts_with("6.1.") {
            (&LINUX_6_1, [32, 0, 16, 0, 4, 2045, 0, 0, 0, 0])
        } else if release.starts_with("6.12.") {
            (&LINUX_6_12, [32, 0, 5464, 0, 1366, 682, 0, 0, 0, 0])
        } else if is_mainline(&built) {
            (&MAINLINE, [21888, 0, 5464, 0, 1364, 0, 0, 0, 0, 0])
        } else {
            continue;
        };
        println!("{} {release}", built.describe());
        for row in rows {
            check_row(&session, row);
        }
        assert_eq!(interleaved(&session), streams, "two streams");
    }
}

fn decisions(tree: &Path) -> String {
    let session = Session::start(&build(tree).unwrap(), &worker()).unwrap();
    shown(&sequential(&session, 16).unwrap())
}

#[test]
#[ignore = "needs kernel sources"]
fn changes_that_need_no_hand_edit() {
    for tree in trees() {
        let expected = decisions(&tree);
        let changed = |change: &dyn Fn(&Copy)| {
            let copy = Copy::of(&tree);
            change(&copy);
            assert_eq!(decisions(copy.path()), expected, "{}", tree.display());
        };
        changed(&|copy| {
            copy.insert_after(PAGEMAP, "struct readahead_control {", " bool _flag;");
            copy.at_start_of(READAHEAD, "page_cache_async_ra", " ractl->_flag = true;");
        });
        changed(&|copy| {
            copy.insert_after(
                "include/linux/fs.h",
                "struct file_ra_state {",
                " unsigned int hits;",
            );
            copy.at_start_of(READAHEAD, "page_cache_async_ra", " ractl->ra->hits++;");
        });
        changed(&|copy| {
            let helper = "\n#define ONE_MORE(n) ((n) + 1)\n\
                static inline unsigned long more(unsigned long n)\n{\n\treturn ONE_MORE(n);\n}\n";
            copy.edit(PAGEMAP, |text| {
                text.replacen(
                    "\nstruct readahead_control {",
                    &format!("{helper}\nstruct readahead_control {{"),
                    1,
                )
            });
            copy.at_start_of(
                READAHEAD,
                "page_cache_async_ra",
                " BUG_ON(more(req_count) <= ONE_MORE(0));",
            );
        });
        changed(&|copy| {
            let text = "static inline bool is_window(unsigned long n)\n{\n\treturn n > 0;\n}\n";
            copy.edit("include/linux/window.h", |_| text.to_owned());
            copy.insert_after(
                READAHEAD,
                "#include <linux/kernel.h>\n",
                "#include <linux/window.h>\n#include <linux/random.h>\n",
            );
            copy.at_start_of(READAHEAD, "page_cache_async_ra", " BUG_ON(!is_window(req_count));");
        });
    }
}

#[test]
#[ignore = "needs kernel sources"]
fn changes_that_end_in_an_error() {
    for tree in trees() {
        let error_in = |statement: &str, isolation: &Isolation| {
            let copy = Copy::of(&tree);
            copy.at_start_of(READAHEAD, "page_cache_async_ra", statement);
            let built = build(copy.path())?;
            sequential(&Session::start(&built, isolation)?, 16).map(|_| ())
        };
        let error = |statement: &str| error_in(statement, &worker()).unwrap_err();
        let fault = |statement: &str| match error(statement) {
            Error::Fault { fault, place, .. } => {
                (fault, place.map_or_else(String::new, |p| p.file))
            }
            other => panic!("{other}"),
        };
        let at = READAHEAD.to_owned();

        let unknown = error(" if (folio_test_lukewarm(folio)) return;");
        println!("{unknown}");
        assert!(
            matches!(&unknown, Error::Compile { missing, .. } if missing[0].name == "folio_test_lukewarm" && missing[0].place.file == READAHEAD)
        );
        assert!(matches!(
            error(" extern int socket(int, int, int); socket(2, 1, 0);"),
            Error::ForeignSymbols { .. }
        ));
        assert!(matches!(
            error(" static int calls; ractl->_index += calls++;"),
            Error::MutableGlobals { .. }
        ));
        assert_eq!(fault(" BUG_ON(req_count);"), (Fault::Bug("req_count".to_owned()), at.clone()));
        let null = Fault::Signal { name: "SIGSEGV", address: 8 };
        assert_eq!(fault(" *(volatile int *)8 = 1;"), (null, at.clone()));
        let endless = error_in(" for (;;) barrier();", &impatient_worker(Duration::from_secs(1)));
        println!("{}", endless.as_ref().unwrap_err());
        assert!(
            matches!(endless, Err(Error::Fault { fault: Fault::Endless { .. }, place: Some(place), .. }) if place.file == READAHEAD)
        );
    }
}

#[test]
#[ignore = "needs kernel sources"]
fn random_accesses_here_and_in_a_worker() {
    for tree in trees() {
        let built = build(&tree).unwrap();
        let replay = |isolation: &Isolation| {
            let session = Session::start(&built, isolation).unwrap();
            let settings = InstanceSettings { i_size: 64 * MIB, ..InstanceSettings::default() };
            let mut instance = session.instance(settings).unwrap();
            let opens = [instance.open().unwrap(), instance.open().unwrap()];
            let mut state = 1_u64;
            let mut random = |below: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut accesses = Vec::new();
            for _ in 0..100_000 {
                let (file, pos) = (opens[random(2) as usize], ByteOffset(random(65 * MIB)));
                accesses.push(match random(20) {
                    0..12 => Access::read(file, pos, 1 + random(300 * KIB)),
                    12..16 => Access::touch(
                        file,
                        pos.page(),
                        kernel::Mapping { sequential: random(4) == 0, ..Default::default() },
                    ),
                    16 => Access::advise(
                        file,
                        [
                            kernel::Advice::Normal,
                            kernel::Advice::Random,
                            kernel::Advice::Sequential,
                        ][random(3) as usize],
                        pos,
                        0,
                    ),
                    17 => Access::advise(file, kernel::Advice::WillNeed, pos, random(4 * MIB)),
                    18 => Access::advise(file, kernel::Advice::DontNeed, pos, random(4 * MIB)),
                    _ => Access::evict(pos.page()),
                });
            }
            let text = shown(instance.replay(&accesses).unwrap());
            let (warnings, first) = instance.warnings();
            assert_eq!(warnings, 0, "{first:?}");
            text
        };
        let (here, there) = (replay(&Isolation::InProcess), replay(&worker()));
        let differs = here.lines().zip(there.lines()).find(|(a, b)| a != b);
        assert_eq!(differs, None, "{}", tree.display());
        assert_eq!(here.len(), there.len(), "{}", tree.display());
    }
}
