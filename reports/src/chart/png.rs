//! Drawings as PNG images.

use super::canvas::Canvas;
use super::style::Ink;

/// Pixels of the image to one of the drawing, for screens and paper of a fine grain.
const SCALE: usize = 2;
/// Pixels drawn to one of the image, along each side: their mean smooths slanted lines.
const SAMPLES: usize = 2;

/// An image of the drawing.
pub(super) fn encode((width, height): (i32, i32), draw: impl FnOnce(&Canvas<'_>)) -> Vec<u8> {
    let drawn = SCALE * SAMPLES;
    let (columns, rows) = (width as usize * drawn, height as usize * drawn);
    let mut pixels = vec![0; columns * rows * 3];
    let canvas = Canvas::bitmap(&mut pixels, (width, height), drawn as i32);
    canvas.rect((0, 0), (width, height), Ink::Paper);
    draw(&canvas);
    canvas.finish();
    write(&smoothed(&pixels, columns), columns / SAMPLES, rows / SAMPLES)
}

/// Means of squares of pixels.
fn smoothed(pixels: &[u8], columns: usize) -> Vec<u8> {
    let mut means = Vec::with_capacity(pixels.len() / SAMPLES / SAMPLES);
    for rows in pixels.chunks_exact(columns * SAMPLES * 3) {
        for left in (0..columns).step_by(SAMPLES) {
            for colour in 0..3 {
                let at = |n: usize| (n / SAMPLES * columns + left + n % SAMPLES) * 3 + colour;
                let sum: usize = (0..SAMPLES * SAMPLES).map(|n| usize::from(rows[at(n)])).sum();
                means.push((sum / SAMPLES / SAMPLES) as u8);
            }
        }
    }
    means
}

fn write(pixels: &[u8], columns: usize, rows: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, columns as u32, rows as u32);
    encoder.set_color(png::ColorType::Rgb);
    let dots_per_metre = (96.0 * SCALE as f64 / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: dots_per_metre,
        yppu: dots_per_metre,
        unit: png::Unit::Meter,
    }));
    let written = encoder.write_header().and_then(|mut image| image.write_image_data(pixels));
    written.expect("memory takes every image");
    out
}
