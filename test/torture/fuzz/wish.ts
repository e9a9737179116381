/**
 * What a request is to be, as data: made from a seed alone, and made into bytes when it is sent. What lives (a token, a
 * code, a link) is named here and filled in then.
 */

/** A value of somebody's, or something near it. */
export class Live {
  readonly what: LiveKind
  /** Whose: 0 is the request's own persona, others are neighbours. */
  readonly neighbour: number
  readonly damage: Damage | null

  constructor(what: LiveKind, neighbour: number, damage: Damage | null) {
    this.what = what
    this.neighbour = neighbour
    this.damage = damage
  }
}

export const liveKinds = [
  'access',
  'refresh',
  'session',
  'challenge',
  'code',
  'recovery',
  'password',
  'email',
  'userId',
  'sessionId',
  'link',
  'state',
  'providerCode',
  'stateCookie',
  'providerToken',
  'ticket',
  'mailedCode',
  'cursor',
] as const
export type LiveKind = (typeof liveKinds)[number]

export type Damage =
  | { do: 'flip'; at: number; to: string }
  | { do: 'cut'; at: number }
  | { do: 'insert'; at: number; text: string }
  | { do: 'repeat' }
  | { do: 'case' }
  /** Another header or payload in a token of three parts. */
  | { do: 'part'; part: number; json: string }

export function damaged(value: string, damage: Damage | null): string {
  if (damage === null) return value
  const at = 'at' in damage ? damage.at % (value.length + 1) : 0
  switch (damage.do) {
    case 'flip':
      return value.slice(0, at) + damage.to + value.slice(at + 1)
    case 'cut':
      return value.slice(0, at)
    case 'insert':
      return value.slice(0, at) + damage.text + value.slice(at)
    case 'repeat':
      return value + value
    case 'case':
      return value === value.toUpperCase() ? value.toLowerCase() : value.toUpperCase()
    case 'part': {
      const parts = value.split('.')
      parts[damage.part] = Buffer.from(damage.json).toString('base64url')
      return parts.join('.')
    }
  }
}

export type Text = string | Live

export interface Wish {
  method: string
  /** Of the table. */
  path: string
  /** For each `:name`; written as it stands when `raw`. */
  parameters: { value: Text; raw: boolean }[]
  query: { name: string; value: Text; raw: boolean }[]
  headers: { name: string; value: Text }[]
  cookies: { name: string; value: Text }[]
  persona: number
  body: Body
  /** Bytes that no client sends: over a socket of their own. */
  quirk: Quirk | null
}

export type Body =
  | { kind: 'none' }
  /** Live values anywhere in it. */
  | { kind: 'json'; value: unknown; twist: Twist | null }
  | { kind: 'form'; fields: { name: string; value: Text }[] }
  | { kind: 'text'; text: string }
  | { kind: 'bytes'; bytes: Uint8Array }

export type Twist = 'prototype keys' | 'keys twice' | 'cut' | 'deep' | 'huge' | 'byte order mark' | 'utf-16'

export const quirks = [
  'length too large',
  'length too small',
  'length negative',
  'length twice',
  'length and chunks',
  'broken chunks',
  'control characters in a header',
  'a header without a colon',
  'a folded header',
  'a flood of headers',
  'no host',
  'a host that is none',
  'a target in absolute form',
  'a target with blanks',
  'HTTP/1.0',
  'HTTP/9.9',
  'half a request',
] as const
export type Quirk = (typeof quirks)[number]
