//! What size an image becomes, and what it may take to get there.

use toolsrv::Error;

use crate::{Fit, Resize};

/// How many pixels an image may have: a PNG of a few kilobytes can claim millions, each takes 4 bytes.
const MAX_PIXELS: u64 = 4 << 20;

/// How many pixels all steps together may have: 48 MiB of the 64 that a sandbox has.
const MAX_TOTAL: u64 = 12 << 20;

/// How long a side of the result may be, and of the image: its rows and the weights of its pixels take memory, too.
const MAX_SIDE: u32 = 4096;
const MAX_SOURCE_SIDE: u32 = 16_384;

/// What part of an image becomes an image of what size.
#[derive(Debug, PartialEq)]
pub struct Plan {
    pub left: f64,
    pub top: f64,
    pub cut_width: f64,
    pub cut_height: f64,
    pub width: u32,
    pub height: u32,
}

/// Refuses an image by what its header claims, before anything is allocated for it.
pub fn check(width: u32, height: u32, resize: &Resize) -> Result<(), Error> {
    let (w, h) = (u64::from(width), u64::from(height));
    if w * h > MAX_PIXELS || width.max(height) > MAX_SOURCE_SIDE {
        return Err(Error::new(format!(
            "The image has {width} x {height} pixels; 2048 x 2048 or as many in another shape are the most, and {MAX_SOURCE_SIDE} on a side. \
             Scale it down before."
        ))
        .code("too_large"));
    }
    let plan = plan(width, height, resize)?;
    let (to_w, to_h) = (u64::from(plan.width), u64::from(plan.height));
    if to_w * to_h > MAX_PIXELS || w * h + (to_w * h).max(w * to_h) + to_w * to_h > MAX_TOTAL {
        return Err(Error::new(format!(
            "Making {} x {} pixels of {width} x {height} takes too much memory. Ask for a smaller width and height.",
            plan.width, plan.height
        ))
        .code("too_large"));
    }
    Ok(())
}

/// Computes the size of the result.
pub fn plan(width: u32, height: u32, resize: &Resize) -> Result<Plan, Error> {
    let (w, h) = (f64::from(width), f64::from(height));
    let side = |length: f64| (length.round() as u32).clamp(1, MAX_SIDE);
    let whole = |width, height| Plan { left: 0.0, top: 0.0, cut_width: w, cut_height: h, width, height };
    for (name, length) in [("width", resize.width), ("height", resize.height)] {
        if length.is_some_and(|length| length == 0 || length > MAX_SIDE) {
            return Err(
                Error::new(format!("The argument \"{name}\" has to be 1 to {MAX_SIDE} pixels.")).code("bad_size")
            );
        }
    }
    let (to_w, to_h) = match (resize.width, resize.height) {
        (None, None) => {
            return Err(
                Error::new("Neither \"width\" nor \"height\" is given: pass at least one of them.").code("bad_size")
            );
        }
        (Some(to_w), None) => return Ok(whole(to_w, side(h * f64::from(to_w) / w))),
        (None, Some(to_h)) => return Ok(whole(side(w * f64::from(to_h) / h), to_h)),
        (Some(to_w), Some(to_h)) => (to_w, to_h),
    };
    let (scale_w, scale_h) = (f64::from(to_w) / w, f64::from(to_h) / h);
    Ok(match resize.fit {
        Fit::Fill => whole(to_w, to_h),
        Fit::Contain => {
            let scale = scale_w.min(scale_h);
            whole(side(w * scale), side(h * scale))
        }
        Fit::Cover => {
            let scale = scale_w.max(scale_h);
            let (cut_width, cut_height) = ((f64::from(to_w) / scale).min(w), (f64::from(to_h) / scale).min(h));
            Plan {
                left: (w - cut_width) / 2.0,
                top: (h - cut_height) / 2.0,
                cut_width,
                cut_height,
                width: to_w,
                height: to_h,
            }
        }
    })
}
