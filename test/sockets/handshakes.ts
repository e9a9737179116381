import { afterEach } from 'vitest'
import { errors } from '../../src'
import type { RequestWithHeaders } from '../../src/guards/live-session/request-headers'
import { type LocalHost, type LocalMember, signedIn } from '../local/people'

export const deliveries = ['bearer', 'cookie', 'both', 'session'] as const
export type Delivery = (typeof deliveries)[number]

export const own = 'https://app.example.test'
export const foreign = 'https://evil.example.net'

/** The headers that the person's browser sends with the handshake of a socket at our origin; in delivery `bearer`, those of an app. */
export function handshakeOf(delivery: Delivery, { token }: Pick<LocalMember, 'token'>): Record<string, string> {
  if (delivery === 'bearer') return { authorization: `Bearer ${token}` }
  return { host: 'app.example.test', origin: own, cookie: `${delivery === 'session' ? 'auth_session' : 'access_token'}=${token}` }
}

/** What a handshake resolved with or the code of its refusal. */
export async function codeOf(answer: Promise<unknown>): Promise<string> {
  try {
    await answer
    return 'in'
  } catch (error) {
    if (!(error instanceof errors.AppError)) throw error
    const { reason } = error.details
    return reason === undefined ? error.code : `${error.code} ${String(reason)}`
  }
}

export async function person(host: LocalHost, delivery: Delivery) {
  const member = await signedIn(host)
  const headers = handshakeOf(delivery, member)
  return { ...member, headers }
}

export const withHeaders = (headers: unknown): RequestWithHeaders => ({ headers }) as RequestWithHeaders // also what no type allows

/** A signal as a test sees it: the code of its reason, or `open`. */
export const stateOf = ({ aborted, reason }: AbortSignal): string => (aborted ? reasonOf(reason) : 'open')

function reasonOf(reason: unknown): string {
  if (!(reason instanceof errors.AppError)) throw new Error('a signal ends with an error of doorward')
  return reason.code
}

/** Waits until the signal aborts, at most so long. */
export async function endOf(signal: AbortSignal, withinMs = 5_000): Promise<string> {
  const end = new AbortController()
  const timer = setTimeout(() => end.abort(), withinMs)
  signal.addEventListener('abort', () => end.abort())
  if (!signal.aborted) await new Promise((resolve) => end.signal.addEventListener('abort', resolve))
  clearTimeout(timer)
  return stateOf(signal)
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Releases what a test has held, so that no later test sees its statements. */
export function holding(): <Held extends { release(): void }>(held: Held) => Held {
  const all: { release(): void }[] = []
  afterEach(() => {
    for (const { release } of all.splice(0)) release()
  })
  return (held) => {
    all.push(held)
    return held
  }
}
