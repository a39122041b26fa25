//! The orders, and their lines on the socket.

use agentcfg_core::model::UserId;

/// An order to a running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Write a consistent copy of the store.
    Backup,
    /// Put a compacted file in the place of the store file.
    Compact,
    /// Put a new master key before the others, and seal everything under it.
    RotateMasterKey {
        /// Whether to remove the old keys at the end.
        drop_old: bool,
    },
    /// Make a link that signs this user in.
    LoginLink {
        /// The user.
        user: UserId,
    },
}

impl Order {
    /// The line that is sent.
    pub(super) fn line(&self) -> Vec<u8> {
        match self {
            Self::Backup => BACKUP.to_vec(),
            Self::Compact => COMPACT.to_vec(),
            Self::RotateMasterKey { drop_old: false } => ROTATE.to_vec(),
            Self::RotateMasterKey { drop_old: true } => ROTATE_AND_DROP.to_vec(),
            // An identifier has no control characters, and so no line end.
            Self::LoginLink { user } => [LOGIN_LINK, user.as_bytes(), b"\n"].concat(),
        }
    }

    /// Reads a line; `None` for an order that this server does not know.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        match line {
            BACKUP => Some(Self::Backup),
            COMPACT => Some(Self::Compact),
            ROTATE => Some(Self::RotateMasterKey { drop_old: false }),
            ROTATE_AND_DROP => Some(Self::RotateMasterKey { drop_old: true }),
            _ => {
                let user = line.strip_prefix(LOGIN_LINK)?.strip_suffix(b"\n")?;
                let user = std::str::from_utf8(user).ok()?.parse().ok()?;
                Some(Self::LoginLink { user })
            }
        }
    }
}

const BACKUP: &[u8] = b"backup 1\n";
const COMPACT: &[u8] = b"compact 1\n";
const ROTATE: &[u8] = b"rotate-master-key 1\n";
const ROTATE_AND_DROP: &[u8] = b"rotate-master-key 1 drop-old\n";
const LOGIN_LINK: &[u8] = b"login-link 1 ";

/// The longest line: an identifier has up to 200 characters of up to four bytes.
pub(super) const LONGEST_LINE: usize = 1024;
