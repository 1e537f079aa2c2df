//! HTTP/2 attacks: frames that RFC 9113 allows, in excessive numbers.

use std::time::Duration;

use svc_test_support::Result;
use svc_test_support::frames::{
    ACK, END_STREAM, Frame, INITIAL_WINDOW_SIZE, PREFACE, cancel, frame, head, kind, request, settings as settings_of,
};
use tokio::io::{AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::time::Instant;

use super::Attackers;
use crate::server::Connection;

const CLIENTS: usize = 8;
/// Frames per write.
const FRAMES_PER_WRITE: u32 = 64;

type Reader = ReadHalf<Box<dyn Connection>>;
type Writer = WriteHalf<Box<dyn Connection>>;

/// Opens a connection and sends the client's settings.
async fn open(all: &Attackers, settings: &[(u16, u32)]) -> Result<(Reader, Writer)> {
    let (reader, mut writer) = tokio::io::split(all.target.connect("h2").await?);
    writer.write_all(PREFACE).await?;
    writer.write_all(&settings_of(settings)).await?;
    all.record("connections");
    Ok((reader, writer))
}

/// Sends the frames that `next` returns, and reads responses meanwhile, until the server closes the connection.
async fn flood(
    all: &Attackers,
    (mut reader, mut writer): (Reader, Writer),
    mut next: impl FnMut(u32) -> Vec<u8>,
) -> Result<()> {
    let sending = async {
        for number in 0.. {
            let frames: Vec<u8> = (0..FRAMES_PER_WRITE).flat_map(|at| next(number * FRAMES_PER_WRITE + at)).collect();
            if writer.write_all(&frames).await.is_err() {
                all.record("cut off");
                return;
            }
            all.record_many("frames", FRAMES_PER_WRITE as usize);
        }
    };
    let reading = async {
        while let Some(frame) = Frame::read(&mut reader).await.ok().flatten() {
            record_frame(all, &frame);
        }
    };
    // When writing fails, a response may still be readable.
    let sending = async {
        sending.await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    tokio::select! {
        () = sending => {}
        () = reading => {}
    }
    Ok(())
}

pub(super) fn record_frame(all: &Attackers, frame: &Frame) {
    match frame.kind {
        kind::GOAWAY => all.record(format!("GOAWAY {}", frame.number(4).unwrap_or_default())),
        kind::RST_STREAM => all.record(format!("RST_STREAM {}", frame.number(0).unwrap_or_default())),
        kind::HEADERS => all.record("responses"),
        _ => {}
    }
}

/// Returns the stream id of the n-th request of a connection.
fn stream(number: u32) -> u32 {
    (number * 2 + 1) & !(1 << 31)
}

pub(super) async fn resets(all: &Attackers) -> Result<()> {
    let attack = |all: Attackers, _| async move {
        let connection = open(&all, &[]).await?;
        let target = all.target.clone();
        let one = |number| {
            [
                request(stream(number), "GET", "/api/v1/contacts?limit=200", target.key(), END_STREAM),
                cancel(stream(number)),
            ]
        };
        flood(&all, connection, |number| one(number).concat()).await
    };
    all.each(CLIENTS, attack).await
}

pub(super) async fn streams(all: &Attackers) -> Result<()> {
    let attack = |all: Attackers, _| async move {
        let connection = open(&all, &[]).await?;
        let key = all.target.key().to_owned();
        // Their bodies are never sent.
        flood(&all, connection, |number| request(stream(number), "POST", "/api/v1/contacts", &key, 0)).await
    };
    all.each(CLIENTS, attack).await
}

pub(super) async fn continuations(all: &Attackers) -> Result<()> {
    let attack = |all: Attackers, _| async move {
        let (reader, mut writer) = open(&all, &[]).await?;
        writer.write_all(&frame(kind::HEADERS, END_STREAM, 1, &head("GET", "/api/v1/ping", all.target.key()))).await?;
        let more = svc_test_support::frames::field("x-more", &"x".repeat(100)).repeat(10);
        flood(&all, (reader, writer), |_| frame(kind::CONTINUATION, 0, 1, &more)).await
    };
    all.each(CLIENTS, attack).await
}

pub(super) async fn settings(all: &Attackers) -> Result<()> {
    let attack = |all: Attackers, _| async move {
        let connection = open(&all, &[]).await?;
        flood(&all, connection, |number| settings_of(&[(INITIAL_WINDOW_SIZE, number & 0xffff)])).await
    };
    all.each(4, attack).await
}

pub(super) async fn pings(all: &Attackers) -> Result<()> {
    let attack = |all: Attackers, _| async move {
        let connection = open(&all, &[]).await?;
        flood(&all, connection, |number| frame(kind::PING, 0, 0, &u64::from(number).to_be_bytes())).await
    };
    all.each(4, attack).await
}

pub(super) async fn empty_frames(all: &Attackers) -> Result<()> {
    let attack = |all: Attackers, _| async move {
        let (reader, mut writer) = open(&all, &[]).await?;
        writer.write_all(&request(1, "POST", "/api/v1/contacts", all.target.key(), 0)).await?;
        flood(&all, (reader, writer), |_| frame(kind::DATA, 0, 1, &[])).await
    };
    all.each(4, attack).await
}

pub(super) async fn stuck_answers(all: &Attackers, clients: usize, path: &'static str) -> Result<()> {
    let attack = move |all: Attackers, _| async move {
        // A window of one byte makes the server keep each response in its buffers.
        let (mut reader, mut writer) = open(&all, &[(INITIAL_WINDOW_SIZE, 1)]).await?;
        let started = Instant::now();
        for number in 0..20 {
            writer.write_all(&request(stream(number), "GET", path, all.target.key(), END_STREAM)).await?;
        }
        all.record_many("requests", 20);
        while let Some(frame) = Frame::read(&mut reader).await? {
            record_frame(&all, &frame);
            // Responding writer pings keeps the connection alive.
            if frame.kind == kind::PING && frame.flags & ACK == 0 {
                pong(&mut writer, &frame).await?;
            }
        }
        all.record(format!("cut after {} s", started.elapsed().as_secs()));
        Ok(())
    };
    all.each(clients, attack).await
}

async fn pong(writer: &mut (impl AsyncWrite + Unpin), ping: &Frame) -> Result<()> {
    Ok(writer.write_all(&frame(kind::PING, ACK, 0, &ping.payload)).await?)
}
