//! What a capture means.
//!
//! The shared vocabulary of the program: quantities ([`units`]), events as the
//! parsers deliver them ([`event`], [`capture`]), and what is made of them:
//! access streams ([`access`]) with their settings ([`settings`]), built from
//! events ([`streams`]), from a list of accesses ([`ops`]), from a fio iolog
//! ([`iolog`]) or from a workload description ([`workload`]).

pub mod access;
pub mod capture;
pub mod event;
pub mod iolog;
pub mod join;
pub mod ops;
pub mod settings;
pub mod sidecar;
pub mod streams;
pub mod units;
pub mod workload;
