//! Previews of raster images: recognized by their first bytes, bounded in bytes and pixels.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Larger images get no preview.
const MAX_BYTES: usize = 256 * 1024;
/// A browser unpacks an image to four bytes a pixel; this bounds what a small file can ask for.
const MAX_PIXELS: u64 = 16_000_000;

/// An image that the page may show.
pub(crate) struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub(crate) mime: &'static str,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Standard base64 of the whole file.
    pub(crate) data: String,
}

/// Looks at the bytes of one side of a binary file.
///
/// # Errors
/// In words, why there is no preview.
pub(crate) fn preview(bytes: &[u8]) -> Result<Image, &'static str> {
    let (mime, size) = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        ("image/png", png(bytes))
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        ("image/jpeg", jpeg(bytes))
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        ("image/gif", gif(bytes))
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        ("image/webp", webp(bytes))
    } else {
        return Err("not a raster image");
    };
    let (width, height) = size.ok_or("the image is damaged")?;
    if bytes.len() > MAX_BYTES {
        return Err("larger than 256 KiB");
    }
    if width == 0 || height == 0 || u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err("too many pixels");
    }
    Ok(Image { mime, width, height, data: STANDARD.encode(bytes) })
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn le(bytes: &[u8], at: usize, n: usize) -> Option<u32> {
    Some(bytes.get(at..at + n)?.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.get(12..16)? == b"IHDR").then_some(())?;
    Some((be32(bytes, 16)?, be32(bytes, 20)?))
}

fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((le(bytes, 6, 2)?, le(bytes, 8, 2)?))
}

fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        (*bytes.get(at)? == 0xff).then_some(())?;
        let marker = *bytes.get(at + 1)?;
        match marker {
            0xff => at += 1,
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((be16(bytes, at + 7)?, be16(bytes, at + 5)?));
            }
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => at += 2 + usize::try_from(be16(bytes, at + 2)?).ok()?,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((le(bytes, 24, 3)? + 1, le(bytes, 27, 3)? + 1)),
        b"VP8L" => {
            let bits = le(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => Some((le(bytes, 26, 2)? & 0x3fff, le(bytes, 28, 2)? & 0x3fff)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png_header(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    #[test]
    fn a_png_is_known_by_its_bytes() {
        let image = preview(&png_header(3, 2)).unwrap();
        assert_eq!((image.mime, image.width, image.height), ("image/png", 3, 2));
    }

    #[test]
    fn other_formats_carry_their_size() {
        let gif = b"GIF89a\x05\x00\x07\x00\x00";
        assert_eq!(preview(gif).map(|i| (i.width, i.height)), Ok((5, 7)));
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x00\x02\x00\x03rest";
        assert_eq!(preview(jpeg).map(|i| (i.width, i.height)), Ok((3, 2)));
        let webp = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x09\0\0\x04\0\0";
        assert_eq!(preview(webp).map(|i| (i.width, i.height)), Ok((10, 5)));
    }

    #[test]
    fn nothing_else_is_shown() {
        let says = |bytes: &[u8]| preview(bytes).map(|image| image.mime).unwrap_err();
        assert_eq!(says(b"<svg onload=alert(1)>"), "not a raster image");
        assert_eq!(says(b"\x89PNG\r\n\x1a\n"), "the image is damaged");
        assert_eq!(says(&png_header(60_000, 60_000)), "too many pixels");
        let mut large = png_header(3, 2);
        large.resize(MAX_BYTES + 1, 0);
        assert_eq!(says(&large), "larger than 256 KiB");
    }
}
