//! Holds a replay against what the capture recorded.
