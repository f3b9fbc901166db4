//! Replays lists of accesses through a tree and compares with what a kernel did.
//!
//! `ops TREE FOLDER [--in-process] [--patch FILE]`: FOLDER holds `NAME.ops.txt` (`read OFFSET LENGTH`,
//! `mmap_read`, `fadvise_seq` ...) and `figures.tsv` (name, folios, folios by order, device reads).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use kernel::{
    Access, Advice, Built, Decided, InstanceSettings, Isolation, Limits, Mapping, Options, Session,
    Tree,
};
use traces::units::{ByteOffset, PAGE_SIZE, PageIndex};

fn main() -> ExitCode {
    if let Some(code) = kernel::run_if_asked() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        arguments
            .iter()
            .position(|a| a == name)
            .and_then(|i| arguments.get(i + 1))
            .map(PathBuf::from)
    };
    let isolation = match arguments.iter().any(|a| a == "--in-process") {
        true => Isolation::InProcess,
        false => Isolation::Worker(Limits::default()),
    };
    let options = Options {
        patch: value("--patch"),
        isolation: isolation.clone(),
        keep: true,
        ..Options::default()
    };
    match run(&arguments[0], Path::new(&arguments[1]), &options, &isolation) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn run(
    spec: &str,
    folder: &Path,
    options: &Options,
    isolation: &Isolation,
) -> kernel::Result<usize> {
    let built = Built::new(&Tree::parse(spec)?, options)?;
    println!(
        "{} {:?} {} {:?}",
        built.describe(),
        built.version_guess(),
        built.compiler(),
        built.notes()
    );
    let session = Session::start(&built, isolation)?;
    println!("{:?}", session.notes());
    let figures = std::fs::read_to_string(folder.join("figures.tsv")).expect("figures.tsv");
    let mut wrong = 0;
    for line in figures.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let name = columns[0];
        let Ok(ops) = std::fs::read_to_string(folder.join(format!("{name}.ops.txt"))) else {
            continue;
        };
        let meta =
            std::fs::read_to_string(folder.join(format!("{name}.meta.txt"))).unwrap_or_default();
        let (by_order, folios, reads) = replay(&session, &ops, &meta)?;
        let exact = by_order == columns[2] && reads.to_string() == columns[3];
        wrong += usize::from(!exact);
        println!(
            "{} {name}: {folios} folios {by_order} {reads} reads; recorded {} {} {}",
            if exact { "ok" } else { "XX" },
            columns[1],
            columns[2],
            columns[3]
        );
    }
    Ok(wrong)
}

fn setting(meta: &str, key: &str, default: u64) -> u64 {
    let words = meta.split(|c: char| c.is_whitespace() || c == '=' || c == ':').collect::<Vec<_>>();
    let found = words.iter().position(|w| *w == key);
    found
        .and_then(|i| words[i + 1..].iter().find(|w| !w.is_empty()))
        .and_then(|w| w.parse().ok())
        .unwrap_or(default)
}

fn replay(session: &Session, ops: &str, meta: &str) -> kernel::Result<(String, usize, u64)> {
    let io_pages = setting(meta, "max_sectors_kb", 512) / 4;
    let settings = InstanceSettings {
        i_size: setting(meta, "size", 512 << 20),
        ra_pages: (setting(meta, "read_ahead_kb", 128) / 4) as u32,
        io_pages: io_pages as u32,
        ..InstanceSettings::default()
    };
    let mut instance = session.instance(settings)?;
    let file = instance.open()?;
    let mut accesses = Vec::new();
    for line in ops.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (Some(pos), Some(len)) =
            (words.get(1).and_then(|w| w.parse().ok()), words.get(2).and_then(|w| w.parse().ok()))
        else {
            continue;
        };
        let pos = ByteOffset(pos);
        match words[0] {
            "read" | "pread" => accesses.push(Access::read(file, pos, len)),
            "fadvise_seq" => accesses.push(Access::advise(file, Advice::Sequential, pos, len)),
            "fadvise_rand" => accesses.push(Access::advise(file, Advice::Random, pos, len)),
            "readahead" => accesses.push(Access::readahead(file, pos, len)),
            "fadvise_willneed" => accesses.push(Access::advise(file, Advice::WillNeed, pos, len)),
            word if word.starts_with("mmap") || word == "touch" => {
                let pages = len.div_ceil(PAGE_SIZE);
                accesses.extend(
                    (0..pages).map(|i| {
                        Access::touch(file, PageIndex(pos.page().0 + i), Mapping::default())
                    }),
                );
            }
            other => println!("  unknown {other}"),
        }
    }
    let mut by_order: BTreeMap<u8, u64> = BTreeMap::new();
    let (mut folios, mut reads) = (0, 0);
    for decision in instance.replay(&accesses)?.iter() {
        match decision.what {
            Decided::Folio { order, .. } => {
                *by_order.entry(order.0).or_default() += 1;
                folios += 1;
            }
            Decided::DeviceRead { pages, .. } => reads += u64::from(pages).div_ceil(io_pages),
            _ => {}
        }
    }
    let (warnings, first) = instance.warnings();
    if warnings > 0 {
        println!("  {warnings} warnings, first {first:?}");
    }
    let by_order: Vec<String> = by_order.iter().map(|(o, n)| format!("{o}:{n}")).collect();
    Ok((by_order.join(" "), folios, reads))
}
