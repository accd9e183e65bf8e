use super::*;

/// A span as the trace shows it.
#[derive(Clone, Copy, Debug)]
struct Shown {
    shown_lane: u32,
    start_ns: u64,
    end_ns: u64,
}

/// Lanes in use, and the spans shown so far.
#[derive(Default)]
struct Board {
    lanes: Lanes,
    shown: Vec<Shown>,
    /// Lane and start of each open span.
    open: Vec<(u32, u64)>,
}

impl Board {
    fn open(&mut self, parent: Option<u32>, now_ns: u64) -> u32 {
        let lane = self.lanes.allocate(parent, None, any_lane).unwrap().lane;
        self.open.push((lane, self.lanes.begin(lane, None, now_ns)));
        lane
    }

    fn end(&mut self, lane: u32, now_ns: u64) -> u32 {
        let at = self.open.iter().position(|open| open.0 == lane).unwrap();
        let (_, start_ns) = self.open.remove(at);
        let Ended {
            shown_lane, end_ns, ..
        } = self.lanes.end(lane, now_ns);
        self.shown.push(Shown {
            shown_lane,
            start_ns,
            end_ns,
        });
        self.lanes.release(lane);
        shown_lane
    }

    /// Fails if two spans on a lane overlap without one containing the other.
    fn check(&mut self) {
        self.shown.sort_by_key(|span| {
            (
                span.shown_lane,
                span.start_ns,
                std::cmp::Reverse(span.end_ns),
            )
        });
        let mut around: Vec<Shown> = Vec::new();
        for span in &self.shown {
            assert!(span.start_ns <= span.end_ns, "{span:?}");
            let is_over = |outer: &mut Shown| {
                outer.shown_lane != span.shown_lane || outer.end_ns <= span.start_ns
            };
            while around.pop_if(is_over).is_some() {}
            let outer = around.last().copied().unwrap_or(Shown {
                end_ns: u64::MAX,
                ..*span
            });
            assert!(span.end_ns <= outer.end_ns, "{span:?} in {outer:?}");
            around.push(*span);
        }
    }
}

/// Makes a lane reusable as soon as it is freed.
fn any_lane(_lane: u32) -> bool {
    true
}

/// A small generator (splitmix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

#[test]
fn a_lane_whose_line_is_being_written_is_not_reused() {
    let mut lanes = Lanes::default();
    for lane in 0..4 {
        assert_eq!(lanes.allocate(None, None, any_lane).unwrap().lane, lane);
        lanes.end(lane, 1);
    }
    (0..4).for_each(|lane| lanes.release(lane));
    assert_eq!(lanes.allocate(None, None, |lane| lane > 1).unwrap().lane, 2);
    assert_eq!(
        lanes.allocate(None, None, |lane| lane == 1).unwrap().lane,
        1
    );
    assert_eq!(
        lanes.allocate(None, None, |_| false).unwrap().lane,
        4,
        "a new one"
    );
    assert_eq!(lanes.allocate(None, None, any_lane).unwrap().lane, 0);
    assert_eq!(lanes.allocate(None, None, any_lane).unwrap().lane, 3);
}

#[test]
fn deep_spans_begin_a_new_lane() {
    let mut board = Board::default();
    let mut lanes = vec![board.open(None, 0)];
    for now in 1..1200 {
        let parent = lanes.last().copied();
        lanes.push(board.open(parent, now));
    }
    let shown_lanes: Vec<u32> = lanes
        .iter()
        .rev()
        .map(|lane| board.end(*lane, 2000))
        .collect();
    let of = |shown_lane: u32| shown_lanes.iter().filter(|one| **one == shown_lane).count();
    assert_eq!((of(0), of(501), of(1002)), (501, 501, 198));
    board.check();
}

#[test]
fn names_are_written_once_for_a_lane_that_is_shown() {
    let given = |name: &str| Some(LaneName::new(name));
    let mut lanes = Lanes::default();
    let allocate =
        |lanes: &mut Lanes, parent, name| lanes.allocate(parent, name, any_lane).unwrap();
    let outer = allocate(&mut lanes, None, Some("task 1"));
    assert!(!outer.is_named);
    assert_eq!(lanes.unwritten_name(outer.lane), given("task 1"));
    assert_eq!(lanes.unwritten_name(outer.lane), None, "once");
    let inner = allocate(&mut lanes, Some(outer.lane), Some("not asked for"));
    assert!(inner.is_named, "it may never be shown");
    assert_eq!(lanes.end(outer.lane, 5).orphan, Some(inner.lane));
    assert!(!lanes.end(inner.lane, 6).is_named);
    assert_eq!(lanes.unwritten_name(inner.lane), given("task 1"));
    lanes.release(inner.lane);
    lanes.release(outer.lane);
    assert!(allocate(&mut lanes, None, Some("task 1")).is_named);
    for _ in 0..2 {
        let allocated = allocate(&mut lanes, None, None);
        assert!(!allocated.is_named);
        assert_eq!(
            lanes.unwritten_name(allocated.lane),
            Some(LaneName::Numbered)
        );
    }
}

#[test]
fn nothing_overlaps_whatever_ends_first() {
    for seed in 0..2000 {
        let mut rng = Rng(seed);
        let (mut board, mut stack) = (Board::default(), Vec::new());
        let (mut now_ns, mut opened) = (1_000, 0);
        while opened < 200 || !stack.is_empty() {
            // A clock that often stands still and differs between processors.
            now_ns += rng.below(3);
            let read_ns = now_ns - rng.below(20);
            if opened < 200 && (stack.is_empty() || rng.below(2) == 0) {
                let parent = match rng.below(10) {
                    0 => None,
                    1 => board.open.first().map(|open| open.0), // not the top of the stack
                    _ => stack.last().copied(),
                };
                stack.push(board.open(parent, read_ns));
                opened += 1;
            } else {
                let top = stack.len() as u64 - 1;
                let at = if rng.below(4) == 0 {
                    rng.below(top + 1)
                } else {
                    top
                };
                let lane = stack.remove(usize::try_from(at).unwrap());
                board.end(lane, read_ns);
            }
        }
        assert_eq!(board.shown.len(), 200);
        board.check();
    }
}
