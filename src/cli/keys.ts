import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { type CommandAnswer, CommandRefusal, UsageError } from './terminal'

interface KeyEntry {
  readonly kid: string
  readonly alg: string
  readonly privateKey?: string
  readonly publicKey?: string
}

export interface KeyFlags {
  readonly alg?: string | undefined
  readonly step?: string | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/** A verifier keeps the key set for 300 seconds, and a cache before it for as long (`max-age`). */
const keySetSeconds = 600

export function keys(words: readonly string[], flags: KeyFlags, env: Environment): CommandAnswer {
  const [verb, ...more] = words
  if (more.length > 0) throw new UsageError(`doorward keys ${verb} takes no further arguments.`)
  if (flags.step !== undefined && verb !== 'rotate') throw new UsageError('--step belongs to `doorward keys rotate`.')
  if (flags.alg !== undefined && verb !== 'new' && flags.step !== 'publish')
    throw new UsageError('--alg belongs to `doorward keys new` and to `--step publish`.')
  switch (verb) {
    case 'new':
      return newEntry(flags.alg)
    case 'list':
      return listed(entriesIn(env))
    case 'rotate':
      return rotated(entriesIn(env), flags, env)
    default:
      throw new UsageError('Write `doorward keys new`, `doorward keys list` or `doorward keys rotate --step publish|sign|retire`.')
  }
}

function newEntry(alg?: string): CommandAnswer {
  const entry = makeKey(alg)
  return { json: entry, text: JSON.stringify(entry) }
}

function makeKey(alg = 'ES256'): KeyEntry {
  const kid = `${new Date().toISOString().slice(0, 10)}-${randomBytes(4).toString('hex')}`
  return { kid, alg, privateKey: privatePem(alg) }
}

function privatePem(alg: string): string {
  if (alg === 'ES256') return pemOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }))
  if (alg === 'RS256' || alg === 'PS256') return pemOf(generateKeyPairSync('rsa', { modulusLength: 3072 }))
  throw new UsageError('--alg must be ES256, RS256 or PS256.')
}

function pemOf({ privateKey }: { privateKey: KeyObject }): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function entriesIn({ AUTH_JWT_KEYS: text }: Environment): readonly KeyEntry[] {
  if (!text)
    throw new CommandRefusal(
      'NO_KEYS',
      'AUTH_JWT_KEYS is not set. Make the first key by `doorward keys new` and set the variable to a JSON list with it. A jwtSecret is changed by its own list (docs/signing-keys.md).',
    )
  const entries = parsed(text)
  if (Array.isArray(entries) && entries.length > 0 && entries.every(isEntry)) return entries
  throw new CommandRefusal('UNREADABLE_KEYS', 'AUTH_JWT_KEYS is not a JSON list of keys: [{ "kid", "alg", "privateKey" }].')
}

/** Null: malformed. The parser's error is hidden, because its message would quote the value. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function isEntry(value: unknown): value is KeyEntry {
  const { kid, alg, privateKey, publicKey } = Object(value) as Partial<Record<keyof KeyEntry, unknown>>
  return typeof kid === 'string' && typeof alg === 'string' && [privateKey, publicKey].some((key) => typeof key === 'string')
}

function listed(entries: readonly KeyEntry[]): CommandAnswer {
  const rows = entries.map(({ kid, alg }, place) => ({ kid, alg, use: place === 0 ? 'signs' : 'verifies' }))
  return { json: { keys: rows }, text: rows.map(({ kid, alg, use }) => `${kid}  ${alg}  ${use}`).join('\n') }
}

function rotated(entries: readonly KeyEntry[], { step, alg }: KeyFlags, env: Environment): CommandAnswer {
  switch (step) {
    case 'publish':
      if (nextOf(entries)) return unchanged(step, entries, 'The next key is published already')
      return nextValue(step, [...entries, makeKey(alg ?? entries[0]?.alg)], {
        afterwards: 'set it everywhere, then run --step sign',
        waitSeconds: keySetSeconds,
      })
    case 'sign':
      if (entries.length > 1 && !nextOf(entries)) return unchanged(step, entries, 'The newest key signs already')
      return nextValue(step, nextFirst(entries), {
        afterwards: 'set it everywhere, then run --step retire',
        waitSeconds: lifetimeIn(env),
      })
    case 'retire':
      if (entries.length === 1) return unchanged(step, entries, 'No key is left to retire')
      return nextValue(step, entries.slice(0, 1), { afterwards: 'set it everywhere, and the rotation is over', waitSeconds: 0 })
    default:
      throw new UsageError('--step must be publish, sign or retire.')
  }
}

/** Only a key that does not sign yet has a private key behind the first place, so each step can run twice. */
function nextOf([signing, ...others]: readonly KeyEntry[]): KeyEntry | undefined {
  // A key retired by hand may still have its private key. A key of `keys new` begins with its date.
  const isOlder = ({ kid }: KeyEntry) =>
    [kid, signing?.kid].every((kid) => kid && dated.test(kid)) && kid.slice(0, 10) < `${signing?.kid}`.slice(0, 10)
  return others.findLast((entry) => entry.privateKey !== undefined && !isOlder(entry))
}

const dated = /^\d{4}-\d\d-\d\d-/

function nextFirst(entries: readonly KeyEntry[]): readonly KeyEntry[] {
  const next = nextOf(entries)
  if (!next) throw new CommandRefusal('NOT_PUBLISHED', 'AUTH_JWT_KEYS has only one key; run --step publish first.')
  return [next, ...entries.filter((entry) => entry !== next).map(publicOnly)]
}

function publicOnly({ privateKey, publicKey, ...entry }: KeyEntry): KeyEntry {
  if (publicKey !== undefined || privateKey === undefined) return { ...entry, ...(publicKey !== undefined && { publicKey }) }
  try {
    return { ...entry, publicKey: createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString() }
  } catch {
    throw new CommandRefusal('UNREADABLE_KEYS', `The privateKey of ${JSON.stringify(entry.kid)} in AUTH_JWT_KEYS is not a key in PEM.`)
  }
}

function unchanged(step: string, entries: readonly KeyEntry[], reason: string): CommandAnswer {
  return {
    json: { step, keys: entries, waitSeconds: 0 },
    text: JSON.stringify(entries),
    note: `Step ${step}: nothing to do. ${reason}. The value of AUTH_JWT_KEYS stays as it is.`,
  }
}

/** In seconds. The command does not know a lifetime that the app's code sets. */
function lifetimeIn({ AUTH_ACCESS_TOKEN_TTL_SECONDS: text }: Environment): number {
  const seconds = Number(text || 900)
  if (Number.isInteger(seconds) && seconds > 0) return seconds
  throw new CommandRefusal('UNREADABLE_LIFETIME', 'AUTH_ACCESS_TOKEN_TTL_SECONDS is not a number of seconds.')
}

function nextValue(step: string, entries: readonly KeyEntry[], next: { afterwards: string; waitSeconds: number }): CommandAnswer {
  const wait = next.waitSeconds === 0 ? '' : `, ${next.waitSeconds} seconds after the last process has it`
  return {
    json: { step, keys: entries, waitSeconds: next.waitSeconds },
    text: JSON.stringify(entries),
    note: `Step ${step}: the next value of AUTH_JWT_KEYS is on standard output; ${next.afterwards}${wait}.`,
  }
}
