import { createHmac } from 'node:crypto'
import { ConfigurationError } from '../core/errors'
import type { HttpClient } from '../core/http-client'
import { withOwnMessage } from '../core/logger'
import { withTimeout } from '../core/with-timeout'
import type { OutboxHandler } from './deliver'

export interface StandardWebhookOptions {
  /** The address of the receiver: https, or http on localhost. */
  url: string
  /** `whsec_` and 24 to 64 bytes in base64. With several secrets, the header has a signature of each, so that you can change the secret. */
  secret: string | readonly string[]
  /** Sends the request. It must not follow redirects, and should obey `signal`. Default: `fetch` of Node. */
  httpClient?: HttpClient
}

const timeoutMs = 15_000

/**
 * Returns a handler for `auth.outbox.deliver` that posts each event once, signed as Standard Webhooks 1.0.0 says (`v1`, HMAC-SHA256). Every
 * answer but a 2xx within 15 seconds is a failure, and `deliver` tries again. Redirects are not followed.
 * @throws ConfigurationError for a wrong address or secret
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function standardWebhook({ url, secret, httpClient = byFetch }: StandardWebhookOptions): OutboxHandler {
  const keys = (Array.isArray(secret) ? secret : [secret]).map(keyOf)
  if (keys.length === 0) throw new ConfigurationError('standardWebhook(): secret is an empty list; give at least one secret.')
  const address = addressOf(url)
  if (typeof httpClient !== 'function')
    throw new ConfigurationError(
      'standardWebhook(): httpClient must be a function of a URL and a request that returns { status, headers, body }.',
    )
  return async ({ id, name, payload, createdAt }) => {
    const body = JSON.stringify({ type: name, timestamp: createdAt.toISOString(), data: payload })
    const seconds = Math.floor(Date.now() / 1000)
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': keys
        .map((key) => `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`)
        .join(' '),
    }
    const signal = AbortSignal.timeout(timeoutMs)
    const sent = httpClient(address, { method: 'POST', headers, body, signal })
    const { status } = await withTimeout(sent, timeoutMs, () =>
      withOwnMessage(new Error('The receiver of the webhook did not answer in 15 seconds.')),
    )
    if (!(status >= 200 && status <= 299)) throw withOwnMessage(new Error(`The receiver of the webhook answered ${status}.`))
  }
}

const byFetch: HttpClient = async (url, { method = 'GET', headers = {}, body = '', signal } = {}) => {
  const answer = await fetch(url, { method, headers, body, redirect: 'manual', ...(signal && { signal }) })
  await answer.body?.cancel().catch(() => undefined) // only the status counts
  return { status: answer.status, headers: {}, body: '' }
}

function addressOf(url: unknown): string {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : null
  const isLocal = parsed !== null && ['localhost', '127.0.0.1', '[::1]'].includes(parsed.hostname)
  const isSafe = parsed?.protocol === 'https:' || (parsed?.protocol === 'http:' && isLocal)
  if (parsed && isSafe && parsed.username === '' && parsed.password === '') return parsed.href
  throw new ConfigurationError(
    'standardWebhook(): url must be an https address without a user name, for example https://hooks.example.com/doorward. http works only on localhost.',
  )
}

function keyOf(secret: unknown): Buffer {
  const [, text = ''] = typeof secret === 'string' ? (/^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? []) : []
  const key = Buffer.from(text, 'base64')
  const isExact = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')
  if (isExact && key.length >= 24 && key.length <= 64) return key
  throw new ConfigurationError(
    'standardWebhook(): secret must be whsec_ and 24 to 64 bytes in base64. The receiver shows it, or make one: `echo whsec_$(openssl rand -base64 32)`.',
  )
}
