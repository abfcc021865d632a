// Controls but tab and line feed; marks that turn the direction of what follows (also of the page around it); lone
// surrogates, which no encoding has.
const INVISIBLE =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Text as it is, with what cannot be seen written out: nobody should be fooled by a name that reads backwards. */
export function visible(text: string): string {
  return text.replace(
    INVISIBLE,
    (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
