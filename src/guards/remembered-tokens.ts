export interface RememberedTokens<T> {
  find(token: string): T | undefined
  keep(token: string, value: T): void
  /** How many there are at most; one that was asked for again may be in both generations. */
  readonly size: number
}

/** Ours have a few hundred characters; with this bound a remembered token costs at most about 4 KiB. */
const longest = 2048

/**
 * At most `limit` tokens, each under its whole text. Two generations: a full one becomes the old one and the old one is
 * dropped whole, so that no flood makes one request pay for the others. What is asked for again moves to the new one.
 */
export function rememberedTokens<T>(limit: number): RememberedTokens<T> {
  const perGeneration = Math.max(1, Math.floor(limit / 2))
  let young = new Map<string, T>()
  let old = new Map<string, T>()

  function put(token: string, value: T): void {
    if (young.size >= perGeneration) {
      old = limit > 1 ? young : new Map()
      young = new Map()
    }
    young.set(token, value)
  }

  return {
    find(token) {
      const found = young.get(token)
      if (found !== undefined || old.size === 0) return found
      const again = old.get(token)
      if (again !== undefined) put(token, again)
      return again
    },
    keep(token, value) {
      if (limit === 0 || token.length > longest) return
      put(token, value)
    },
    get size() {
      return young.size + old.size
    },
  }
}
