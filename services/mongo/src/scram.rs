//! The client's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without a channel binding.

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;
use thiserror::Error;

/// Rounds that a server may ask for. Fewer than RFC 7677 has would be a downgrade, more would let a
/// server keep the client busy for minutes.
const ROUNDS: std::ops::RangeInclusive<u32> = 4_096..=1_000_000;

/// Why the two sides do not know each other.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScramError {
    /// A name or password outside of what needs no preparation.
    #[error("the {what} has characters other than printable ASCII, which are not supported")]
    Characters {
        /// `user` or `password`.
        what: &'static str,
    },
    /// A message of the server that is not what the exchange has.
    #[error("the server's message `{message}` is not understood: {reason}")]
    Message {
        /// The message.
        message: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A server that does not know the password.
    #[error("the server did not prove that it knows the password")]
    Server,
}

/// One exchange.
#[derive(Debug)]
pub struct Exchange {
    password: String,
    nonce: String,
    first: String,
    proof_of_server: Option<hmac::Tag>,
}

fn sign(key: &[u8], text: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
}

impl Exchange {
    /// Begins an exchange; `nonce` is printable ASCII without commas and never used before.
    pub fn new(user: &str, password: &str, nonce: &str) -> Result<Exchange, ScramError> {
        let plain = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        for (what, text) in [("user", user), ("password", password)] {
            if !plain(text) {
                return Err(ScramError::Characters { what });
            }
        }
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Ok(Exchange {
            password: password.to_string(),
            nonce: nonce.to_string(),
            first: format!("n={user},r={nonce}"),
            proof_of_server: None,
        })
    }

    /// The client's first message.
    pub fn first(&self) -> String {
        format!("n,,{}", self.first)
    }

    /// The client's last message, from the server's first.
    pub fn last(&mut self, message: &str) -> Result<String, ScramError> {
        let wrong = |reason| ScramError::Message { message: message.chars().take(120).collect(), reason };
        let mut parts = message.split(',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name));
        let nonce = part("r=").ok_or_else(|| wrong("no nonce"))?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(wrong("its nonce does not go on from the client's"));
        }
        let salt = part("s=").and_then(|text| BASE64_STANDARD.decode(text).ok());
        let salt = salt.ok_or_else(|| wrong("no salt"))?;
        let rounds = part("i=").and_then(|text| text.parse::<u32>().ok());
        let rounds = rounds
            .filter(|rounds| ROUNDS.contains(rounds))
            .and_then(NonZeroU32::new)
            .ok_or_else(|| wrong("expected 4096 to 1000000 rounds"))?;
        let mut salted = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, self.password.as_bytes(), &mut salted);
        let client_key = sign(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
        let without_proof = format!("c=biws,r={nonce}");
        let all = format!("{},{message},{without_proof}", self.first);
        let signature = sign(stored_key.as_ref(), all.as_bytes());
        let proof: Vec<u8> =
            client_key.as_ref().iter().zip(signature.as_ref()).map(|(key, sign)| key ^ sign).collect();
        let server_key = sign(&salted, b"Server Key");
        self.proof_of_server = Some(sign(server_key.as_ref(), all.as_bytes()));
        Ok(format!("{without_proof},p={}", BASE64_STANDARD.encode(proof)))
    }

    /// Checks the server's last message.
    pub fn check(&self, message: &str) -> Result<(), ScramError> {
        let shown = message.split(',').next().and_then(|part| part.strip_prefix("v="));
        let shown = shown.and_then(|text| BASE64_STANDARD.decode(text).ok());
        match (&self.proof_of_server, shown) {
            (Some(proof), Some(shown)) if proof.as_ref() == shown => Ok(()),
            _ => Err(ScramError::Server),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        let mut exchange = Exchange::new("user", "pencil", "rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(exchange.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let last = exchange.last(&format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")).unwrap();
        assert_eq!(last, format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="));
        exchange.check("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").unwrap();
        assert_eq!(exchange.check("v=AAAA"), Err(ScramError::Server));
        assert_eq!(exchange.check("e=invalid-proof"), Err(ScramError::Server));
    }

    #[test]
    fn hostile_servers_are_refused() {
        let mut exchange = Exchange::new("a,b=c", "pencil", "mine").unwrap();
        assert_eq!(exchange.first(), "n,,n=a=2Cb=3Dc,r=mine");
        for wrong in [
            "r=other,s=W22Z,i=4096",
            "r=mine,s=W22Z,i=4096",
            "r=mine1,s=%,i=4096",
            "r=mine1,s=W22Z,i=1",
            "r=mine1,s=W22Z,i=4000000000",
            "",
        ] {
            assert!(matches!(exchange.last(wrong), Err(ScramError::Message { .. })), "{wrong}");
        }
        assert!(exchange.check("v=").is_err(), "nothing was proved yet");
        assert!(Exchange::new("ü", "pencil", "mine").is_err());
    }
}
