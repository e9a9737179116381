/**
 * Whether a token came before, lately: a table of fingerprints, one place for each, so it never grows and nothing of a token
 * that comes only once is kept. A token that is taken for another is remembered one sight too early, no more than that.
 */
export function seenBefore(limit: number): (token: string) => boolean {
  const places = 2 ** Math.ceil(Math.log2(Math.max(limit, 16)))
  const seen = new Int32Array(places)
  return (token) => {
    const print = fingerprint(token)
    const place = print & (places - 1)
    if (seen[place] === print) return true
    seen[place] = print
    return false
  }
}

/** Of the end of a signature, which is as good as random: FNV-1a over the last 12 characters, 72 bits of it at most. */
function fingerprint(token: string): number {
  let print = 0x811c9dc5
  for (let at = Math.max(0, token.length - 12); at < token.length; at++) print = Math.imul(print ^ token.charCodeAt(at), 0x01000193)
  return print ^ (print >>> 15)
}
