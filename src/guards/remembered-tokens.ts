export interface RememberedTokens<T> {
  find(token: string): T | undefined
  keep(token: string, value: T): void
  /** The number of remembered tokens. A token in both generations counts twice. */
  readonly size: number
}

/**
 * The maximum length of a remembered token. The library's own tokens have a few hundred characters. With this limit, one token needs at
 * most about 4 KiB of memory.
 */
const longest = 2048

/**
 * Remembers at most `limit` tokens by their whole text. There are two generations. If the new generation is full, it replaces the old
 * generation, and an empty new generation begins. The whole old generation is dropped in one step, so no request waits until many tokens
 * are removed. If a guard finds a token in the old generation, the map also puts the token into the new generation.
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
