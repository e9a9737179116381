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
