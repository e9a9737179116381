import { ConfigurationError } from '../core/errors'
import { createHttpClient, type HttpClient } from '../core/http-client'
import type { Captcha } from '../http/captcha'

export interface TurnstileOptions {
  /** The public key of the widget. */
  readonly siteKey: string
  /** The key that only the server knows. */
  readonly secret: string
  /** Sends the request to Cloudflare. Default: `createHttpClient({ timeoutMs: 4_000 })`. */
  readonly httpClient?: HttpClient
}

const origin = 'https://challenges.cloudflare.com'

/**
 * Cloudflare Turnstile. Passes only if Cloudflare says `success` and names the same action.
 * @throws ConfigurationError without `siteKey` or `secret`
 */
export function turnstile({ siteKey, secret, httpClient = createHttpClient({ timeoutMs: 4_000 }) }: TurnstileOptions): Captcha {
  for (const [name, value] of Object.entries({ siteKey, secret }))
    if (typeof value !== 'string' || !/^[\w-]{1,256}$/.test(value))
      throw new ConfigurationError(`turnstile() needs ${name}, as the dashboard of Cloudflare shows it.`)
  return {
    async verify(response, req, { action }) {
      const body = new URLSearchParams({ secret, response, remoteip: req.ip ?? '' }).toString()
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const answer = await httpClient(`${origin}/turnstile/v0/siteverify`, { method: 'POST', headers, body })
      // A refused answer has status 200. Other statuses say nothing about the answer.
      if (answer.status !== 200) throw new Error(`Cloudflare answered with status ${answer.status}`)
      const said = JSON.parse(Buffer.from(answer.body).toString('utf8')) as { success?: unknown; action?: unknown } | null
      return said?.success === true && said.action === action
    },
    html: (nonce, { action, locale }) =>
      `<div class="cf-turnstile" data-sitekey="${siteKey}" data-action="${action}" data-language="${locale.toLowerCase()}" data-response-field-name="captcha"></div>
<script nonce="${nonce}" src="${origin}/turnstile/v0/api.js" async defer></script>
`,
    csp: { scriptSrc: [origin], frameSrc: [origin], connectSrc: [origin] },
  }
}
