/**
 * Returns a function that checks whether the guard saw a token recently. The function stores fingerprints in a table of fixed size, so the
 * table never grows and stores no token. Two tokens can have the same fingerprint. The guard then remembers the second token at its first
 * request, which does no harm.
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

/**
 * Returns a hash of the end of the signature: FNV-1a over the last 12 characters (at most 72 bits). The end of a signature is practically
 * random.
 */
function fingerprint(token: string): number {
  let print = 0x811c9dc5
  for (let at = Math.max(0, token.length - 12); at < token.length; at++) print = Math.imul(print ^ token.charCodeAt(at), 0x01000193)
  return print ^ (print >>> 15)
}
