//! The part of protocol buffers that writing takes: whole numbers, floats, and anything that has a
//! length.

/// The largest file that other readers of the format accept.
pub(super) const LARGEST: usize = i32::MAX as usize;

/// A message under construction.
#[derive(Debug, Default, Clone)]
pub(super) struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// A whole number. Negative ones take ten bytes, as the format wants it.
    pub(super) fn int(&mut self, field: u32, value: i64) {
        self.key(field, 0);
        self.varint(value as u64);
    }

    pub(super) fn float(&mut self, field: u32, value: f32) {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.length(field, value.len());
        self.0.extend(value.as_bytes());
    }

    pub(super) fn message(&mut self, field: u32, value: &ProtoMessage) {
        self.length(field, value.0.len());
        self.0.extend(&value.0);
    }

    /// Announces `length` bytes, which the caller appends.
    pub(super) fn length(&mut self, field: u32, length: usize) {
        self.key(field, 2);
        self.varint(length as u64);
    }

    /// Appends what a [`length`](Self::length) announced.
    pub(super) fn append(&mut self, bytes: impl IntoIterator<Item = u8>) {
        self.0.extend(bytes);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}
