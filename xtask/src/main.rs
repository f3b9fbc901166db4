//! Development tasks.
use std::path::PathBuf;
use analysis::load::{LoadOptions, load};
use replay::{log::Decision, machine::Machine, policy, trace_order};
fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let spec = args.next().unwrap();
    let mut options = LoadOptions::default();
    let mut verbose = false;
    for arg in args {
        if let Some((k, v)) = arg.split_once('=') {
            if k == "accesses" { options.accesses = Some(PathBuf::from(v)); } else { options.set.push((k.into(), v.into())); }
            continue;
        }
        if arg == "-v" { verbose = true; continue; }
        let path = PathBuf::from(&arg);
        let loaded = match load(&path, &options) { Ok(l) => l, Err(e) => { println!("{arg}: {e}"); continue; } };
        let source = loaded.source;
        let policy = policy::parse(&spec)?;
        let mut m = Machine::new(&*policy, &source, true, true);
        trace_order::replay(&mut m, &source);
        let rec = source.recorded.as_ref().unwrap();
        let mut mine = 0u64; let mut matched = 0u64; let mut inorder = true; let mut first = String::new();
        for (fi, f) in m.files.iter().enumerate() {
            let r: Vec<_> = rec.folios.iter().filter(|x| x.file as usize == fi).map(|x| (x.page.0, x.order.0)).collect();
            let d: Vec<_> = f.log.decisions.as_ref().unwrap().iter().filter_map(|d| if let Decision::Inserted{folio,..} = d { Some((folio.index.0, folio.order.0)) } else { None }).collect();
            mine += d.len() as u64;
            if r != d && inorder { inorder = false;
                let at = r.iter().zip(&d).position(|(a,b)| a!=b).unwrap_or(r.len().min(d.len()));
                first = format!("file {} at {at}: rec {:?} mine {:?}", source.files[fi].id, &r[at.min(r.len())..(at+4).min(r.len())], &d[at.min(d.len())..(at+4).min(d.len())]);
                if verbose { let ds = f.log.decisions.as_ref().unwrap(); let mut n=0; for (k,x) in ds.iter().enumerate() { if matches!(x, Decision::Inserted{..}) { if n==at { for y in &ds[k.saturating_sub(14)..(k+6).min(ds.len())] { println!("   {y:?}"); } break; } n+=1; } } }
            }
            let mut rs = std::collections::HashMap::<_, i64>::new();
            for x in &r { *rs.entry(*x).or_default() += 1; }
            for x in &d { if let Some(c) = rs.get_mut(x) { if *c > 0 { *c -= 1; matched += 1; } } }
        }
        let mut reqs = Vec::new();
        let mut bl = replay::block::BlockLayer::new(replay::block::QueueLimits::new(&source.settings));
        let maps: Vec<_> = source.files.iter().map(|f| replay::block::ExtentMap::new(f.extents.clone())).collect();
        let pfns: std::collections::HashMap<_, _> = rec.folios.iter().map(|f| ((f.file, f.page), (f.pfn, f.order))).collect();
        for (s, folios) in m.submitted.iter() { let f = &source.files[s.file as usize];
            bl.submit(s, folios, f.size_bytes.div_ceil(4096), &maps[s.file as usize], |a, b| match (pfns.get(&(s.file, a.index)), pfns.get(&(s.file, b.index))) { (Some(x), Some(y)) => x.0 + a.pages() == y.0, _ => false }, &mut reqs); }
        let rr: Vec<_> = rec.reads.iter().filter(|r| r.target.is_some()).map(|r| (r.sector.0, r.sectors)).collect();
        let mr: Vec<_> = reqs.iter().map(|r| (r.sector.0, r.sectors)).collect();
        let rfirst = rr.iter().zip(&mr).position(|(a,b)| a!=b).map(|at| format!("read {at}: {:?} vs {:?}", rr[at], mr[at])).unwrap_or_default();
        println!("{:40} {:?} rec {} mine {mine} matched {matched} {} | reads rec {} mine {} {} foreign {} | opens {} ra {} ms {} acc {} {first} {rfirst}", path.file_name().unwrap().to_string_lossy(), source.fidelity, rec.folios.len(), if inorder {"IN ORDER"} else {"DIFF"}, rr.len(), mr.len(), if rr==mr {"SAME"} else {"DIFF"}, rec.foreign_reads, source.opens.len(), source.settings.ra_pages.value, source.settings.max_sectors_kb.value, source.accesses.len());
    }
    Ok(())
}
