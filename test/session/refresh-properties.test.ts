import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type LocalHost, onLocal, sha256, signedIn } from '../local/people'
import { databases } from '../support/databases'

// Random histories of one family, each step at a moment of its own, against what the contract says of it (sections 12 and
// 13, Grace). Clients are browsers' tabs that share one place where the token is kept, or a thief with a copy of his own.
const windowMs = 10_000
const idleMs = 60_000
const absoluteMs = 200_000
const settings = { refreshTokenTtlSeconds: idleMs / 1000, refreshFamilyTtlSeconds: absoluteMs / 1000 }

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

/** The next token, or the code of the refusal. */
async function refresh(host: LocalHost, token: string): Promise<string> {
  try {
    const next = await host.auth.service.refresh(token)
    return next.kind === 'session' ? next.refreshToken : next.kind
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}

const isRefused = (answer: string) => /^[A-Z_]+$/.test(answer) && answer.length < 112
const passes = (host: LocalHost, ms: number) => host.clock.advance(ms / 1000)

/** The row of a user's only session. */
const rowsOf = (host: LocalHost, userId: string) => host.knex('auth_sessions').where({ user_id: userId })

const within = fc.integer({ min: 0, max: windowMs - 1 })

test('tabs that share a token store, and use a token no sooner than the window after they received it, are never logged out', async () => {
  const host = await start({ settings: { ...settings, refreshReuseGraceSeconds: windowMs / 1000 } })
  // The first of the tabs sets out `pause` after the window; each other one read the same token and arrives `late` ms later.
  const tab = fc.record({ late: within, isLost: fc.boolean() })
  const round = fc.record({ pause: fc.nat(20_000), tabs: fc.array(tab, { minLength: 1, maxLength: 4 }), retry: within })
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 5 }), async (rounds) => {
      const { refreshToken } = await signedIn(host)
      let stored = refreshToken
      for (const { pause, tabs, retry } of rounds) {
        passes(host, windowMs + pause)
        // Answers that were all lost on their way are asked for once more, in time.
        const isEveryLost = tabs.every(({ isLost }) => isLost)
        const arrivals = [
          { late: 0, isLost: tabs[0]?.isLost ?? false },
          ...tabs.slice(1),
          ...(isEveryLost ? [{ late: retry, isLost: false }] : []),
        ]
        let elapsed = 0
        const received: string[] = []
        for (const { late, isLost } of arrivals.toSorted((one, other) => one.late - other.late)) {
          passes(host, late - elapsed)
          elapsed = late
          const answer = await refresh(host, stored)
          expect(isRefused(answer), answer).toBe(false)
          if (!isLost) received.push(answer)
        }
        expect(new Set(received).size).toBe(1)
        stored = String(received[0])
      }
    }),
    { numRuns: 60 },
  )
})

test('R-110: as soon as two holders of one token refresh more than a window apart, the family ends for both', async () => {
  const host = await start({ settings: { ...settings, refreshReuseGraceSeconds: windowMs / 1000 } })
  const turn = fc.record({ pause: fc.nat(5000), apart: fc.integer({ min: 0, max: 2 * windowMs }), movesOn: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 4 }), async (turns) => {
      const { userId, refreshToken } = await signedIn(host)
      let shared = refreshToken
      for (const { pause, apart, movesOn } of turns) {
        passes(host, pause)
        const first = await refresh(host, shared)
        if (isRefused(first)) break // the idle or absolute end
        const further = movesOn ? await refresh(host, first) : first
        passes(host, apart)
        const second = await refresh(host, shared)
        if (apart >= windowMs || movesOn) {
          expect(second).toBe('INVALID_TOKEN')
          for (const token of [shared, first, further]) expect(await refresh(host, token)).toBe('INVALID_TOKEN')
          expect((await rowsOf(host, userId)).filter(({ revoked_at }) => revoked_at === null)).toEqual([])
          break
        }
        expect(second).toBe(first)
        shared = first
      }
    }),
    { numRuns: 60 },
  )
})

/** What the contract says of a family, in the fewest words. */
interface Token {
  plaintext: string
  expiresAt: number
  spentAt: number | null
  successor: Token | null
}

interface Family {
  userId: string
  endsAt: number
  isEnded: boolean
  isActive: boolean
  tokens: Token[]
}

type Step =
  | { kind: 'refresh'; which: number }
  | { kind: 'wait'; ms: number }
  | { kind: 'log out'; which: number }
  | { kind: 'set active'; isActive: boolean }

const step: fc.Arbitrary<Step> = fc.oneof(
  // The newest tokens most of the time, or every history would be over at once.
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('refresh' as const), which: fc.oneof(fc.nat(1), fc.nat(1), fc.nat(30)) }) },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.oneof(fc.nat(windowMs + 1), fc.constant(windowMs), fc.nat(idleMs)) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('log out' as const), which: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('set active' as const), isActive: fc.boolean() }) },
)

describe.each([0, windowMs])('with a window of %i ms', (graceMs) => {
  let host: LocalHost
  const now = () => host.clock.now().getTime()

  const isAlive = ({ isEnded, tokens }: Family) => !isEnded && (tokens.at(-1)?.expiresAt ?? 0) > now()

  /** What the model expects of a refresh: the code of a refusal, a token that was there before, or null for a new one. */
  function expected(family: Family, token: Token): string | null {
    const { spentAt, successor } = token
    if (!isAlive(family)) return 'INVALID_TOKEN'
    if (spentAt === null) {
      return family.isActive ? null : 'ACCOUNT_INACTIVE'
    }
    if (!successor || successor.spentAt !== null || graceMs === 0 || spentAt + graceMs <= now()) {
      family.isEnded = true
      return 'INVALID_TOKEN'
    }
    return family.isActive ? successor.plaintext : 'ACCOUNT_INACTIVE'
  }

  async function play(family: Family, given: Step): Promise<void> {
    if (given.kind === 'wait') return passes(host, given.ms)
    if (given.kind === 'set active') {
      family.isActive = given.isActive
      await host.knex('auth_users').where({ id: family.userId }).update({ is_active: given.isActive })
      return
    }
    const token = family.tokens.at(-1 - (given.which % family.tokens.length))
    if (!token) throw new Error('a family has tokens')
    if (given.kind === 'log out') {
      await host.auth.service.logOut(token.plaintext)
      family.isEnded ||= isAlive(family)
      return
    }
    const answer = expected(family, token)
    const actual = await refresh(host, token.plaintext)
    if (answer !== null) return expect(actual).toBe(answer)
    expect([isRefused(actual), family.tokens.map(({ plaintext }) => plaintext)], actual).toEqual([
      false,
      expect.not.arrayContaining([actual]),
    ])
    token.spentAt = now()
    token.successor = { plaintext: actual, expiresAt: Math.min(now() + idleMs, family.endsAt), spentAt: null, successor: null }
    family.tokens.push(token.successor)
  }

  test('every history of refreshes, replays, pauses, logouts and closed accounts is answered as the contract says', async () => {
    host = await start({ settings: { ...settings, refreshReuseGraceSeconds: graceMs / 1000 } })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        const { userId, refreshToken } = await signedIn(host)
        const first: Token = { plaintext: refreshToken, expiresAt: now() + idleMs, spentAt: null, successor: null }
        const family: Family = { userId, endsAt: now() + absoluteMs, isEnded: false, isActive: true, tokens: [first] }
        for (const given of steps) await play(family, given)

        const rows = await rowsOf(host, userId)
        const seen = rows.map(({ token_hash, generation, revoked_at }) => [token_hash, generation, revoked_at !== null])
        expect(seen).toEqual([[sha256(family.tokens.at(-1)?.plaintext ?? ''), family.tokens.length - 1, family.isEnded]])
      }),
      { numRuns: 80 },
    )
  })
})
