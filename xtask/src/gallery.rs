//! `docs/gallery`: every chart, made from captures of the corpus.
//!
//! A test makes them again in memory and compares bytes, so a chart that changes has to be committed
//! with the code that changed it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::gate::{Budgets, MeasureOptions, expand};
use analysis::load::{LoadOptions, load};
use analysis::recover::recover;
use analysis::replay::{Model, illustrated_report};
use analysis::report::{CorpusReport, ReportOptions};
use analysis::result::ReplayReport;
use analysis::sweep::{Axes, Goal, SweepOptions, SweepReport, sweep};
use analysis::verify::verify;
use anyhow::Context;
use replay::policy::{self, Policy};
use reports::chart::{self, Figure};
use traces::capture::Losses;

/// The policies shown: that of a kernel, and a change proposed to it.
const BASE: &str = "linux-6.18";
const CANDIDATE: &str = "align-async-window-v2";

/// Where each chart comes from: the charts of a capture, under the two policies.
const CHARTS: [(&str, &[&str]); 2] = [
    (
        "linux-6.18/seq1m_after4k_ms512",
        &["orders", "map", "ramp", "raster", "sizes", "waits", "heat"],
    ),
    ("linux-6.1/mmap_rand", &["waste"]),
];

/// The capture swept, and over what.
const SWEPT: (&str, [(&str, &str); 2]) = (
    "linux-6.18/seq1m_after4k_ms512",
    [("read_ahead_kb", "32..1024"), ("max_sectors_kb", "128..1024")],
);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn folder() -> PathBuf {
    root().join("docs/gallery")
}

pub(crate) fn run() -> anyhow::Result<()> {
    let folder = folder();
    std::fs::create_dir_all(&folder)?;
    for old in std::fs::read_dir(&folder)? {
        std::fs::remove_file(old?.path())?;
    }
    for (name, text) in files()? {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    println!("wrote {}", folder.display());
    Ok(())
}

/// The names and contents of all files of the gallery.
fn files() -> anyhow::Result<Vec<(String, String)>> {
    let mut readme = String::from(
        "# Gallery\n\nEvery chart, made by `cargo xtask gallery` from captures of `traces/corpus`. \
         `rareplay compare SOURCE --policy A --policy B -o DIR` makes them from yours, with the data \
         of each as CSV beside it; `--png` writes them as images too.\n",
    );
    let mut files = Vec::new();
    for figure in figures()? {
        let name = format!("{}.svg", figure.id());
        readme += &format!(
            "\n## {}\n\n![{}]({name})\n\n{}\n",
            figure.title(),
            figure.description().replace(['[', ']'], ""),
            figure.reading()
        );
        files.push((name, figure.svg()));
    }
    files.push(("README.md".to_owned(), readme));
    Ok(files)
}

fn figures() -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (capture, ids) in CHARTS {
        let of_capture = chart::of_report(&report(capture)?);
        figures.extend(of_capture.into_iter().filter(|figure| ids.contains(&figure.id())));
    }
    figures.push(chart::corpus(&corpus()?).context("the corpus has captures")?);
    figures.extend(sweeps()?.iter().map(chart::of_sweep));
    Ok(figures)
}

fn policies() -> anyhow::Result<Vec<Arc<dyn Policy>>> {
    [BASE, CANDIDATE].into_iter().map(|name| Ok(policy::parse(name)?)).collect()
}

/// A capture under both policies, held against its recording.
pub(crate) fn report(capture: &str) -> anyhow::Result<ReplayReport> {
    // The name in the pictures is the same wherever the tree lies.
    let name = format!("traces/corpus/{capture}.ftrace.zst");
    let mut loaded = load(&root().join(&name), &LoadOptions::default())?;
    loaded.source.name.clone_from(&name);
    let own = recover(&mut loaded.source).context("no policy for its kernel")?;
    let verified = verify(&loaded.source, &*own)?;
    let losses = loaded.capture.map(|capture| capture.losses).unwrap_or_default();
    let (policies, model) = (policies()?, Model::default());
    Ok(illustrated_report(&loaded.source, &policies, &model, Some(verified), losses))
}

/// Some captures under both policies, judged.
pub(crate) fn judged(captures: &[&str]) -> anyhow::Result<CorpusReport> {
    let path = |capture: &&str| root().join(format!("traces/corpus/{capture}.ftrace.zst"));
    let files = expand(&captures.iter().map(path).collect::<Vec<_>>())?;
    let measure = MeasureOptions::default();
    let (policies, budgets) = (policies()?, Budgets::default());
    let options = ReportOptions { policies, baseline: None, budgets, measure };
    Ok(CorpusReport::new(&files, &options, &|| ()))
}

/// Every capture of the base policy's own kernel under both policies.
fn corpus() -> anyhow::Result<Vec<ReplayReport>> {
    let folder = root().join("traces/corpus").join(BASE);
    let files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = files.collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "zst"));
    paths.sort();
    let (policies, model) = (policies()?, Model::default());
    let mut reports = Vec::new();
    for path in paths {
        let mut source = load(&path, &LoadOptions::default())?.source;
        recover(&mut source);
        let losses = Losses::default();
        reports.push(analysis::replay::report(&source, &policies, &model, None, losses));
    }
    Ok(reports)
}

/// A capture over one setting and over two.
fn sweeps() -> anyhow::Result<Vec<SweepReport>> {
    let (capture, ranges) = SWEPT;
    (1..=ranges.len()).map(|axes| swept(capture, &ranges[..axes])).collect()
}

/// A capture over some settings under both policies.
pub(crate) fn swept(capture: &str, ranges: &[(&str, &str)]) -> anyhow::Result<SweepReport> {
    let name = format!("traces/corpus/{capture}.ftrace.zst");
    let mut source = load(&root().join(&name), &LoadOptions::default())?.source;
    source.name = name;
    let own = recover(&mut source).context("no policy for its kernel")?;
    let verified = verify(&source, &*own)?;
    let (model, goal) = (Model::default(), Goal::Elapsed);
    let options = SweepOptions { model, goal, tolerance_percent: 2.0 };
    let owned = |(key, values): &(&str, &str)| ((*key).to_owned(), (*values).to_owned());
    let axes = Axes::parse(&ranges.iter().map(owned).collect::<Vec<_>>())?;
    let proof = (Some(verified), Losses::default());
    Ok(sweep(&source, &axes, &policies()?, &options, proof, &|| ())?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_gallery_shows_what_the_code_draws() {
        let made: BTreeMap<String, String> =
            files().expect("the corpus is readable").into_iter().collect();
        let mut committed = BTreeMap::new();
        for entry in std::fs::read_dir(folder()).expect("the gallery is committed") {
            let path = entry.expect("readable").path();
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            committed.insert(name, std::fs::read_to_string(&path).expect("UTF-8"));
        }
        let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&made), names(&committed), "run `cargo xtask gallery`");
        for (name, text) in &made {
            assert!(text.len() < 300_000, "{name} has {} bytes", text.len());
            assert!(committed[name] == *text, "{name} is stale: run `cargo xtask gallery`");
        }
    }
}
