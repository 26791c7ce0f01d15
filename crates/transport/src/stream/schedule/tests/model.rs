//! The schedule by lists and searches, as it is documented.

use super::super::Share;
use super::super::turns::QUANTUM;

#[derive(Clone, Copy)]
struct Stream {
    class: i8,
    share: Share,
    stream: u32,
}

/// Class and session, and priority and group if it is a group.
type Name = (i8, u32, Option<(i32, u32)>);

/// A session among those of its class, or a group among those of its session and priority.
#[derive(Clone, Copy)]
struct Member {
    name: Name,
    spent: u64,
}

/// All streams in the order in which they came, and all members in the order of their turns.
pub(super) struct Model {
    is_fair: bool,
    /// True while all streams are of one session and group.
    is_line: bool,
    streams: Vec<Stream>,
    members: Vec<Member>,
    /// Bytes of the turns of streams, by class, session, priority and group, or of the line.
    spent: Vec<((i8, u32, i32, u32), u64)>,
}

const LINE: (i8, u32, i32, u32) = (0, 0, 0, 0);

impl Model {
    pub(super) fn new(is_fair: bool) -> Self {
        Self {
            is_fair,
            is_line: true,
            streams: Vec::new(),
            members: Vec::new(),
            spent: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, class: i8, share: &Share, stream: u32) {
        if self.streams.is_empty() {
            self.is_line = true;
        }
        let flow = |share: &Share| (share.session, share.group);
        if self.is_line && self.streams.iter().any(|it| flow(&it.share) != flow(share)) {
            self.plant();
        }
        let before = self.first_in(class, share);
        self.streams.push(Stream {
            class,
            share: *share,
            stream,
        });
        if !self.is_line {
            self.enter(class, share);
        }
        let after = self.first_in(class, share);
        if before != after {
            *self.turn_of(class, share) = 0;
        }
    }

    /// Returns the first stream of a line.
    fn first_in(&self, class: i8, share: &Share) -> Option<u32> {
        let line = line_of(class, share);
        let members = self
            .streams
            .iter()
            .filter(|it| self.is_line || line_of(it.class, &it.share) == line);
        first_of(members).map(|it| it.stream)
    }

    fn plant(&mut self) {
        self.is_line = false;
        self.spent.clear();
        let mut streams = self.streams.clone();
        // In the order of the line.
        streams.sort_by_key(|it| {
            (
                std::cmp::Reverse(it.class),
                std::cmp::Reverse(it.share.priority),
                std::cmp::Reverse(it.share.order),
            )
        });
        for it in streams {
            self.enter(it.class, &it.share);
        }
    }

    fn enter(&mut self, class: i8, share: &Share) {
        for name in names(class, share) {
            if !self.members.iter().any(|member| member.name == name) {
                self.members.push(Member { name, spent: 0 });
            }
        }
    }

    fn turn_of(&mut self, class: i8, share: &Share) -> &mut u64 {
        let line = if self.is_line {
            LINE
        } else {
            line_of(class, share)
        };
        let at = self.spent.iter().position(|(name, _)| *name == line);
        let at = at.unwrap_or_else(|| {
            self.spent.push((line, 0));
            self.spent.len() - 1
        });
        &mut self.spent[at].1
    }

    fn current(&self) -> Option<Stream> {
        if self.is_line {
            return first_of(self.streams.iter()).copied();
        }
        let class = self.streams.iter().map(|it| it.class).max()?;
        let is_session = |member: &&Member| member.name.0 == class && member.name.2.is_none();
        let session = self.members.iter().find(is_session)?.name.1;
        let of_session = |it: &&Stream| it.class == class && it.share.session == session;
        let priority = self.streams.iter().filter(of_session);
        let priority = priority.map(|it| it.share.priority).max()?;
        let group = self.members.iter().find_map(|member| match member.name {
            (c, s, Some((p, group))) if (c, s, p) == (class, session, priority) => Some(group),
            _ => None,
        })?;
        let line = (class, session, priority, group);
        let in_line = |it: &&Stream| line_of(it.class, &it.share) == line;
        first_of(self.streams.iter().filter(in_line)).copied()
    }

    pub(super) fn first(&self) -> Option<u32> {
        self.current().map(|it| it.stream)
    }

    fn take(&mut self, stream: u32) -> Option<Stream> {
        let at = self.streams.iter().position(|it| it.stream == stream)?;
        let taken = self.streams[at];
        if self.first_in(taken.class, &taken.share) == Some(stream) {
            *self.turn_of(taken.class, &taken.share) = 0;
        }
        Some(self.streams.remove(at))
    }

    /// Removes the members without streams.
    fn clean(&mut self) {
        let streams = &self.streams;
        let is_used = |member: &Member| {
            streams
                .iter()
                .any(|it| names(it.class, &it.share).contains(&member.name))
        };
        self.members.retain(is_used);
        self.spent.retain(|(line, _)| {
            self.is_line
                || streams
                    .iter()
                    .any(|it| line_of(it.class, &it.share) == *line)
        });
        if streams.is_empty() {
            (self.is_line, self.spent) = (true, Vec::new());
        }
        self.settle();
    }

    pub(super) fn remove(&mut self, stream: u32) {
        self.take(stream);
        self.clean();
    }

    pub(super) fn on_sent(&mut self, len: u64) {
        let Some(first) = self.current() else { return };
        let is_fair = self.is_fair;
        let turn = self.turn_of(first.class, &first.share);
        *turn += len;
        if *turn >= QUANTUM && is_fair {
            *turn = 0;
            let at = self.streams.iter().position(|it| it.stream == first.stream);
            self.streams.remove(at.unwrap());
            self.streams.push(first);
        }
        self.count(first, len);
    }

    pub(super) fn on_last_sent(&mut self, len: u64) {
        let Some(first) = self.current() else { return };
        self.take(first.stream);
        self.clean();
        self.count(first, len);
    }

    fn count(&mut self, stream: Stream, len: u64) {
        if self.is_line {
            return;
        }
        for name in names(stream.class, &stream.share) {
            self.charge_member(name, len);
        }
    }

    pub(super) fn charge(&mut self, class: i8, session: u32, len: u64) {
        if !self.is_line {
            self.charge_member((class, session, None), len);
        }
    }

    fn charge_member(&mut self, name: Name, len: u64) {
        if let Some(member) = self.members.iter_mut().find(|member| member.name == name) {
            member.spent = (member.spent + len).min(16 * QUANTUM);
        }
        self.settle();
    }

    /// Passes turns on.
    fn settle(&mut self) {
        let ring = |member: &Member| {
            let (class, session, group) = member.name;
            (class, group.map(|(priority, _)| (session, priority)))
        };
        let mut rings: Vec<_> = self.members.iter().map(ring).collect();
        rings.sort_unstable();
        rings.dedup();
        for name in rings {
            loop {
                let mut members =
                    (0..self.members.len()).filter(|&at| ring(&self.members[at]) == name);
                let first = members.next().unwrap();
                if members.next().is_none() {
                    self.members[first].spent = 0;
                    break;
                }
                if self.members[first].spent < QUANTUM {
                    break;
                }
                let mut member = self.members.remove(first);
                member.spent -= QUANTUM;
                self.members.push(member);
            }
        }
    }

    pub(super) fn move_session(&mut self, session: u32, class: i8) {
        if !self.streams.iter().any(|it| it.share.session == session) {
            return;
        }
        if self.is_line {
            self.plant();
        }
        let mut moved = Vec::new();
        for it in &mut self.streams {
            if it.share.session == session {
                for line in &mut self.spent {
                    if line.0 == line_of(it.class, &it.share) {
                        line.0.0 = class;
                    }
                }
                it.class = class;
            }
        }
        self.members.retain(|member| {
            let is_moved = member.name.1 == session && member.name.2.is_none();
            moved.extend(is_moved.then_some(*member));
            !is_moved
        });
        for member in &mut self.members {
            if member.name.1 == session {
                member.name.0 = class;
            }
        }
        self.members.push(Member {
            name: (class, session, None),
            spent: 0,
        });
        self.settle();
    }
}

fn line_of(class: i8, share: &Share) -> (i8, u32, i32, u32) {
    (class, share.session, share.priority, share.group)
}

fn names(class: i8, share: &Share) -> [Name; 2] {
    let session = share.session;
    let group = Some((share.priority, share.group));
    [(class, session, group), (class, session, None)]
}

/// Returns the first of the streams, which are in the order in which they came.
fn first_of<'s>(streams: impl Iterator<Item = &'s Stream>) -> Option<&'s Stream> {
    let mut best: Option<&Stream> = None;
    for it in streams {
        let key = |it: &Stream| (it.class, it.share.priority, it.share.order);
        if best.is_none_or(|best| key(it) > key(best)) {
            best = Some(it);
        }
    }
    best
}
