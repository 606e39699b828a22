//! Tables behind `https://`, by one plain GET.
//!
//! What comes is kept in a nameless encrypted file, so that every pass reads the same bytes. Redirects are
//! followed to `https://` alone, and not far; a proxy that the environment names is used. Plain `http://` goes to
//! this machine alone. User, password and query of an address are shown nowhere.

use crate::fault::{Error, Result};
use crate::kept::Kept;
use crate::object::{explain_transport, is_here, runtime};
use crate::place::shown;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Redirects that are followed.
const MOST_REDIRECTS: usize = 5;
/// Bytes that are taken at most, unless the environment says otherwise.
const MOST_BYTES: u64 = 64 << 30;
/// For the connection, and between two pieces.
const CONNECTING: Duration = Duration::from_secs(10);
const BETWEEN_PIECES: Duration = Duration::from_secs(120);

/// What the server at this address gives.
///
/// Errors: an address that is none, and whatever the server refuses.
pub(crate) fn read(path: &Path) -> Result<Kept> {
    let address = path.to_str().unwrap_or("");
    let asked = Asked { path };
    let plain = address.split_once('#').map_or(address, |(plain, _)| plain);
    if let Some(rest) = plain.strip_prefix("http://")
        && !is_here(rest)
    {
        return Err(Error::address(path, "plain HTTP works only for this machine; use https://"));
    }
    let runtime = runtime().map_err(|error| asked.remote(error.to_string()))?;
    runtime.block_on(asked.fetch(plain, MOST_BYTES))
}

struct Asked<'a> {
    path: &'a Path,
}

impl Asked<'_> {
    fn remote(&self, what: impl Into<String>) -> Error {
        Error::Remote { path: shown(self.path), what: what.into() }
    }

    async fn fetch(&self, address: &str, most: u64) -> Result<Kept> {
        let follow = reqwest::redirect::Policy::custom(|attempt| {
            let is_plain = attempt.url().scheme() != "https"
                && attempt.previous().iter().any(|url| url.scheme() == "https");
            let is_open =
                attempt.url().scheme() == "http" && !is_here(&attempt.url().as_str()["http://".len()..]);
            if is_plain || is_open {
                attempt.error("it redirects to plain HTTP")
            } else if attempt.previous().len() > MOST_REDIRECTS {
                attempt.error("it redirects too often")
            } else {
                attempt.follow()
            }
        });
        let failed = |error: reqwest::Error| self.remote(explain(&error));
        let client = reqwest::Client::builder()
            .redirect(follow)
            .connect_timeout(CONNECTING)
            .read_timeout(BETWEEN_PIECES)
            .build()
            .map_err(failed)?;
        let mut answer = client.get(address).send().await.map_err(failed)?;
        if !answer.status().is_success() {
            return Err(
                self.remote(format!("the server answers {}; check the address", answer.status().as_u16()))
            );
        }
        let expected = answer.content_length();
        let too_large =
            || self.remote(format!("the table has more than {} GiB; download it by other means", most >> 30));
        if expected.is_some_and(|bytes| bytes > most) {
            return Err(too_large());
        }
        let unkept = |error: std::io::Error| {
            self.remote(format!("the table cannot be stored in {}: {error}", std::env::temp_dir().display()))
        };
        let mut kept = Kept::new().map_err(unkept)?;
        let mut taken = 0u64;
        while let Some(piece) = answer.chunk().await.map_err(failed)? {
            taken += piece.len() as u64;
            if taken > most {
                return Err(too_large());
            }
            kept.write_all(&piece).map_err(unkept)?;
        }
        if expected.is_some_and(|bytes| bytes != taken) {
            return Err(self.remote("the server sent less than announced; run again"));
        }
        kept.flush().map_err(unkept)?;
        Ok(kept)
    }
}

/// What went wrong, without the address, which may hold a password.
fn explain(error: &reqwest::Error) -> String {
    if error.is_builder() {
        return "the address or the settings for proxies are not valid".into();
    }
    if error.is_timeout() {
        return "the server did not answer in time; run again".into();
    }
    format!("the server cannot be reached or failed: {}", explain_transport(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::net::TcpListener;

    /// A server on this machine: what it answers to each path.
    fn served(answers: &'static [(&'static str, &'static str)]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let first = lines.next().unwrap().unwrap();
                lines.map_while(|line| line.ok()).take_while(|line| !line.is_empty()).for_each(drop);
                let path = first.split(' ').nth(1).unwrap().to_owned();
                let answer = answers
                    .iter()
                    .find(|(known, _)| *known == path)
                    .map_or("404 Not Found\r\ncontent-length: 0\r\n\r\n", |(_, answer)| answer);
                stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
            }
        });
        address
    }

    fn text(address: &str) -> std::result::Result<String, String> {
        let kept = read(Path::new(address)).map_err(|error| error.to_string())?;
        let mut text = String::new();
        kept.reader().unwrap().read_to_string(&mut text).unwrap();
        Ok(text)
    }

    #[test]
    fn a_plain_get_gives_the_table_and_faults_are_a_line_without_secrets() {
        let server = served(&[
            ("/a.csv", "200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nk\na\nb\n"),
            ("/a.csv?sig=hunter2", "200 OK\r\nconnection: close\r\n\r\nsigned"),
            ("/moved", "302 Found\r\nlocation: /a.csv\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
            ("/circle", "302 Found\r\nlocation: /circle\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
            (
                "/away",
                "302 Found\r\nlocation: http://192.0.2.1/x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            ),
            ("/short", "200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nk\na\n"),
            ("/secret", "403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        ]);
        let at = |path: &str| format!("http://{server}{path}");
        assert_eq!(text(&at("/a.csv")).unwrap(), "k\na\nb\n");
        assert_eq!(text(&at("/a.csv#Sheet1")).unwrap(), "k\na\nb\n");
        assert_eq!(text(&at("/a.csv?sig=hunter2")).unwrap(), "signed");
        assert_eq!(text(&at("/moved")).unwrap(), "k\na\nb\n");
        for (path, words) in [
            ("/none", "the server answers 404"),
            ("/secret?token=hunter2", "the server answers 404"),
            ("/circle", "redirects too often"),
            ("/away", "redirects to plain HTTP"),
            ("/short", "failed"),
        ] {
            let error = text(&at(path)).unwrap_err();
            assert!(error.contains(words) && error.lines().count() == 1, "{path}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = text("http://ann:hunter2@192.0.2.1/a.csv").unwrap_err();
        assert!(error.contains("use https://") && !error.contains("hunter2"), "{error}");
        assert!(text("https://127.0.0.1:1/a.csv").unwrap_err().contains("cannot be reached"));
    }

    /// Beyond so many bytes nothing is taken, whatever the server says of its length.
    #[test]
    fn a_table_has_so_many_bytes_at_most() {
        let server = served(&[
            ("/a", "200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nk\na\nb\n"),
            ("/b", "200 OK\r\nconnection: close\r\n\r\nk\na\nb\n"),
        ]);
        for path in ["/a", "/b"] {
            let address = format!("http://{server}{path}");
            let asked = Asked { path: Path::new(&address) };
            let runtime = runtime().unwrap();
            assert!(runtime.block_on(asked.fetch(&address, 5)).is_err());
            assert_eq!(runtime.block_on(asked.fetch(&address, 6)).unwrap().bytes(), 6);
        }
    }
}
