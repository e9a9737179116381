import { describe, expect, test, vi } from 'vitest'
import { texts } from '../../src/core/texts/phrase-book'
import type { LinkCodePurpose } from '../../src/store/auth-store'
import { databases } from '../support/databases'
import { ask, onCodes, purposes, ways } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

const firefox = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'
const warned: ReadonlySet<LinkCodePurpose> = new Set(['PASSWORD_RESET', 'EMAIL_CHANGE'])

describe('mails with a link and a code (30.1.1)', () => {
  const { start } = onCodes(sqlite)

  async function mailOf(purpose: LinkCodePurpose, language: string, settings: object = {}) {
    const host = await start({ settings })
    const { path, body, headers, email } = await ways[purpose].prepare(host)
    await host
      .browser()
      .post(`${host.prefix}${path}`)
      .set({ ...headers, 'User-Agent': firefox, 'Accept-Language': language })
      .send(body)
    return host.mails.next({ to: email })
  }

  test.each(purposes.flatMap((purpose) => (['en-US', 'pt-BR'] as const).map((locale) => [purpose, locale] as const)))(
    '%s, %s: subject, both parts and both ends; the last line is for the browser; reset and change warn first',
    async (purpose, locale) => {
      const { subject, text, html, code = '', url } = await mailOf(purpose, locale)
      const groups = `${code.slice(0, 4)} ${code.slice(4)}`
      expect(code).toMatch(/^\d{8}$/)
      expect(subject.endsWith(`: ${groups}`)).toBe(true)
      expect(text.trimEnd().split('\n').at(-1)).toBe(`@app.example.test #${code}`)
      for (const part of [text, html]) {
        expect(part).toContain(groups)
        expect(part).toContain(String(url))
        expect(part).toContain(texts[locale]['mail.code_beside'])
        expect(part).toContain(locale === 'en-US' ? 'This code is valid for 10 minutes' : 'Este código vale por 10 minutos')
        expect(part).toContain(locale === 'en-US' ? 'This link is valid for' : 'Este link vale por')
      }
      const [, first = ''] = text.split('\n\n')
      const warning =
        locale === 'en-US'
          ? /Type it only at app\.example\.test, in the browser where you asked \(Firefox, Windows, .+ UTC\)\. We never ask for it\./
          : /somente em app\.example\.test, .*\(Firefox, Windows, .+ UTC\)\. Nós nunca o pedimos\./
      expect(warning.test(first)).toBe(warned.has(purpose))
      expect(warning.test(html)).toBe(warned.has(purpose))
    },
  )

  test('an unknown browser leaves only the time in the warning', async () => {
    const host = await start()
    const { email } = await ask(host, 'PASSWORD_RESET')
    const { text } = host.mails.mails.find(({ to }) => to === email) ?? { text: '' }
    expect(text).toMatch(/in the browser where you asked \([^,]+, 20\d\d at [^)]+ UTC\)\. We never ask for it\./)
  })

  test('without publicUrl the host is that of the link', async () => {
    const { text } = await mailOf('PASSWORD_RESET', 'en-US', { publicUrl: '' })
    expect(text).toContain('Type it only at app.example.test, in')
  })

  test('a host’s template gets the code, its end and the request', async () => {
    const password_reset = vi.fn(() => ({ subject: 's', text: 't', html: 'h' }))
    const host = await start({ options: { templates: { mails: { password_reset } } } })
    const { code } = await ask(host, 'PASSWORD_RESET')
    const now = host.clock.now()
    expect(password_reset).toHaveBeenCalledWith(
      expect.objectContaining({
        code,
        codeExpiresAt: new Date(now.getTime() + 600_000),
        asked: { at: now, browser: null, host: 'app.example.test' },
      }),
    )
  })

  test('no code stands in a log or an event', async () => {
    const host = await start()
    const events: unknown[] = []
    for (const name of ['signup', 'activation', 'mail.failed', 'throttled', 'login'] as const)
      host.auth.events.on(name, (payload) => events.push(payload))
    const codes = []
    for (const purpose of purposes) codes.push((await ask(host, purpose)).code)
    const said = JSON.stringify([host.logs.text(), events])
    for (const code of codes) expect(said).not.toContain(code)
  })
})
