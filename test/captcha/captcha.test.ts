import type { Request } from 'express'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type AuthRouterOptions, type Captcha, type GuardedAction, proofOfWork } from '../../src'
import { bearerOf, type LocalHost, newAddress, onLocal, password, post, signedIn } from '../local/people'
import { fieldValue, onPages, problemOf, sendForm } from '../page-routes/people'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'
import { recordQueries } from '../support/record-queries'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)
const pages = onPages(sqlite)

/** Takes the answer `right`. */
function stand(more: Partial<Captcha> = {}) {
  const asked: { answer: string; action: GuardedAction }[] = []
  const captcha: Captcha = {
    verify: async (answer, _req, { action }) => {
      asked.push({ answer, action })
      return answer === 'right'
    },
    ...more,
  }
  return { captcha, asked }
}

/** The routes that ask, and what for. */
const asking: Readonly<Record<string, GuardedAction>> = {
  '/signup': 'signup',
  '/cookie/signup': 'signup',
  '/activation/request': 'link',
  '/password-reset/request': 'link',
  '/email-login/request': 'email_login',
  '/cookie/email-login/request': 'email_login',
}
const logins = ['/login', '/cookie/login', '/session/login']
const both = {
  tokenDelivery: 'both',
  emailLogin: 'both',
  emailLoginUrlTemplate: 'https://app.example.com/email-login?token={token}',
} as const

const send = (host: LocalHost, path: string, more: object = {}) => post(host, path, { email: newAddress(), password, ...more })

describe('captcha', () => {
  test('31.4.1 asks sign-ups, mailed links and logins by email; a login only if captchaWhen says so', async () => {
    const { captcha, asked } = stand()
    const host = await start({ settings: both, options: { captcha } })
    for (const [path, action] of Object.entries(asking)) {
      expect((await send(host, path)).body).toMatchObject({ code: 'CAPTCHA_REQUIRED', details: {} })
      const passed = await send(host, path, { captcha: 'right' })
      expect([path, passed.status]).toEqual([path, path.endsWith('signup') ? 201 : 202])
      expect(asked.splice(0)).toEqual([{ answer: 'right', action }])
    }
    for (const path of logins) expect((await send(host, path)).body.code).toBe('UNAUTHORIZED')

    const strict = await start({ settings: both, options: { captcha, captchaWhen: (_req, { action }) => action === 'login' } })
    for (const path of logins) {
      expect((await send(strict, path)).body.code).toBe('CAPTCHA_REQUIRED')
      expect((await send(strict, path, { captcha: 'right' })).body.code).toBe('UNAUTHORIZED')
    }
    for (const path of Object.keys(asking)) expect((await send(strict, path)).status).toBeLessThan(300)
  })

  test('31.4.1 never asks a request with a session, nor the service', async () => {
    const { captcha, asked } = stand()
    const host = await start({ options: { captcha, captchaWhen: () => true } })
    const [user] = await host.auth.service.signUp({ email: newAddress(), password })
    expect(user.isActive).toBe(false)
    const ana = await signedIn(host)
    expect((await post(host, '/email-verify/request', {}, bearerOf(ana))).status).toBe(202)
    expect(asked).toEqual([])
  })

  test.each([
    ['throws', () => Promise.reject(new Error('down'))],
    ['says no boolean', () => undefined as unknown as boolean],
  ])('31.4.1 a captchaWhen that %s asks', async (_what, captchaWhen) => {
    const host = await start({ options: { captcha: stand().captcha, captchaWhen, logger: logTap() } })
    expect((await send(host, '/login')).body.code).toBe('CAPTCHA_REQUIRED')
  })

  test('31.4.1 captchaWhen gets the request and the action, and no address', async () => {
    const seen: unknown[] = []
    const captchaWhen = (req: Request, about: object) => {
      seen.push({ body: req.body, about })
      return false
    }
    const host = await start({ options: { captcha: stand().captcha, captchaWhen } })
    await send(host, '/signup')
    expect(seen).toEqual([{ body: undefined, about: { action: 'signup' } }])
  })

  test('31.4.2 the captcha comes before the other limits, and they before the invitation', async () => {
    const { captcha } = stand()
    const throttle: AuthRouterOptions['throttle'] = { signup: { attempts: 1, windowSeconds: 60 } }
    const host = await start({ settings: { signupMode: 'invite' }, options: { captcha, throttle } })
    const codeOf = async (more: object) => (await send(host, '/signup', { invitation: 'a'.repeat(43), ...more })).body.code
    expect(await codeOf({})).toBe('CAPTCHA_REQUIRED')
    expect(await codeOf({ captcha: 'right' })).toBe('INVITATION_REQUIRED')
    expect(await codeOf({ captcha: 'right' })).toBe('SIGNUP_THROTTLED')
    expect(await codeOf({})).toBe('CAPTCHA_REQUIRED')
  })

  test('31.4.2 a refused body uses up no answer, and a refused answer costs no statement and counts against no other limit', async () => {
    const { captcha, asked } = stand()
    const throttle: AuthRouterOptions['throttle'] = { signup: { attempts: 1, windowSeconds: 60 } }
    const host = await start({ options: { captcha, throttle } })
    expect((await send(host, '/signup', { email: 'no address', captcha: 'right' })).status).toBe(422)
    expect((await post(host, '/activation/request', { captcha: 'right' })).status).toBe(422)
    // Also by the rules of a password, and of the host's own fields.
    for (const refused of [{ password: 'short' }, { password: 'password1234' }, { name: 'x'.repeat(121) }])
      expect((await send(host, '/signup', { ...refused, captcha: 'right' })).status).toBe(422)
    expect(asked).toEqual([])
    const queries = recordQueries(host.knex)
    for (let times = 0; times < 3; times++) expect((await send(host, '/signup', { captcha: 'wrong' })).status).toBe(403)
    expect(queries.stop()).toEqual([])
    expect((await send(host, '/signup', { captcha: 'right' })).status).toBe(201)
  })

  test.each([
    ['none', {}],
    ['an empty one', { captcha: '' }],
    ['no text', { captcha: { toString: 'right' } }],
    ['a list', { captcha: ['right'] }],
    ['4,097 characters', { captcha: 'x'.repeat(4_097) }],
  ])('31.4.3 verify is not called without an answer: %s', async (_what, body) => {
    const { captcha, asked } = stand()
    const host = await start({ options: { captcha } })
    for (const path of ['/signup', '/activation/request']) expect((await send(host, path, body)).body.code).toBe('CAPTCHA_REQUIRED')
    expect(asked).toEqual([])
  })

  test.each([1, 'true', {}, undefined])('31.4.3 an answer of verify that is not exactly true refuses: %s', async (said) => {
    const host = await start({ options: { captcha: stand({ verify: async () => said as boolean }).captcha } })
    expect((await send(host, '/signup', { captcha: 'right' })).body.code).toBe('CAPTCHA_REQUIRED')
  })

  test('31.4.3 the host’s signup.schema and onSignup never get the answer', async () => {
    const seen: unknown[] = []
    const signup = {
      schema: z.strictObject({ email: z.string(), team: z.string() }),
      onSignup: (_user: unknown, extra: object) => void seen.push(extra),
    }
    const host = await start({ options: { captcha: stand().captcha, signup } })
    expect((await send(host, '/signup', { captcha: 'right', team: 'tea' })).status).toBe(201)
    expect(JSON.stringify(seen)).not.toContain('right')
  })

  test('31.4.3 the refusal is equal for a taken and a free address', async () => {
    const { captcha } = stand()
    const host = await start({ options: { captcha } })
    const { email } = await signedIn(host)
    const [taken, free] = [await send(host, '/signup', { email }), await send(host, '/signup')]
    expect([taken.status, taken.body]).toEqual([free.status, free.body])
  })

  test('31.4.4 a check that fails is 503 with Retry-After and one log line, and passes with failOpen', async () => {
    const logger = logTap()
    const verify = (): Promise<boolean> => Promise.reject(new Error('down'))
    const host = await start({ options: { captcha: stand({ verify }).captcha, logger } })
    const refused = await send(host, '/signup', { captcha: 'right' })
    expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([503, 'CAPTCHA_UNAVAILABLE', '5'])
    expect(logger.entries.filter(({ message }) => message.includes('captcha.verify failed'))).toHaveLength(1)
    const open = await start({ options: { captcha: stand({ verify, failOpen: true }).captcha, logger } })
    expect((await send(open, '/signup', { captcha: 'right' })).status).toBe(201)
    expect((await send(open, '/signup')).body.code).toBe('CAPTCHA_REQUIRED')
  })

  test.each([
    [{ captchaWhen: () => true }, /captchaWhen needs the option captcha/],
    [{ captcha: {} }, /captcha needs verify/],
    [{ captcha: { verify: async () => true, html: '<b>' } }, /captcha\.html/],
    [{ captcha: { verify: async () => true, field: 'a b' } }, /captcha\.field/],
    [{ captcha: { verify: async () => true, failOpen: 1 } }, /captcha\.failOpen/],
    [{ captcha: { ...proofOfWork(), verify: async () => true } }, /proofOfWork\(\) makes verify and html itself/],
    [{ theme: { name: 'Shop', csp: { imgSrc: ['https://a.example,b'] } } }, /theme\.csp\.imgSrc/],
    [{ theme: { name: 'Shop', csp: { imgSrc: ['https://a.example;b'] } } }, /theme\.csp\.imgSrc/],
    ...[
      '*',
      'data:',
      'blob:',
      "'unsafe-inline'",
      'https://a.example; img-src *',
      'http://a.example',
      'https://*.example',
      'https://a.example,b',
    ].map((origin) => [{ captcha: { verify: async () => true, csp: { frameSrc: [origin] } } }, /captcha\.csp\.frameSrc/] as const),
    [{ captcha: { verify: async () => true, csp: { mediaSrc: [] } } }, /captcha\.csp has no "mediaSrc"/],
  ] as [object, RegExp][])('31.4.5 boot refuses %j', async (options, message) => {
    await expect(start({ options })).rejects.toThrow(message)
  })

  test('31.4.5 boot refuses a captcha without html beside pages', async () => {
    await expect(pages.start({ options: { captcha: { verify: async () => true } } })).rejects.toThrow(
      /captcha needs html beside pagesEnabled/,
    )
  })
})

describe('the captcha on our pages', () => {
  const widget: Partial<Captcha> = {
    html: (nonce, { action, locale }) => `<div id="widget" data-for="${action}-${locale}"></div><script nonce="${nonce}">1</script>`,
    csp: { frameSrc: ['https://captcha.example'], scriptSrc: ['https://captcha.example'] },
    field: 'answer',
  }
  const shown = { '/auth/signup': 'signup', '/auth/forgot-password': 'link', '/auth/login': 'email_login' }

  test('31.4.5 each form that is asked shows the widget, and its page alone has the wider policy', async () => {
    const { captcha } = stand(widget)
    const host = await pages.start({ settings: { emailLogin: 'both' }, options: { captcha } })
    const browser = host.browser()
    for (const [path, action] of Object.entries(shown)) {
      const page = await browser.get(path)
      expect(page.text).toContain(`data-for="${action}-en-US"`)
      expect(page.text).toContain('<noscript>')
      const policy = String(page.headers['content-security-policy'])
      const [, nonce] = /script nonce="([^"]+)"/.exec(page.text) ?? []
      expect(policy).toContain(`script-src 'self' 'nonce-${nonce}' https://captcha.example`)
      expect(policy).toContain('frame-src https://captcha.example')
    }
    const plain = await pages.start({ options: { captcha } })
    const login = await plain.browser().get('/auth/login')
    expect([login.text.includes('widget'), String(login.headers['content-security-policy']).includes('captcha.example')]).toEqual([
      false,
      false,
    ])
  })

  test('31.4.5 a form with a passkey shows the widget too, and one policy lets the scripts of both widgets run', async () => {
    const { captcha } = stand(widget)
    const settings = { emailLogin: 'both', passkeysEnabled: true, webauthnRpName: 'Shop' } as const
    const host = await pages.start({ settings, options: { captcha, captchaWhen: () => true } })
    for (const [path, actions] of [
      ['/auth/login', ['login', 'login']],
      ['/auth/signup', ['signup', 'login']],
    ] as const) {
      const page = await host.browser().get(path)
      expect([...page.text.matchAll(/data-for="(\w+)-en-US"/g)].map(([, action]) => action)).toEqual(actions)
      const nonces = [...page.text.matchAll(/script nonce="([^"]+)"/g)].map(([, nonce]) => nonce)
      expect([nonces.length, new Set(nonces).size]).toEqual([2, 1])
      expect(String(page.headers['content-security-policy'])).toContain(`script-src 'self' 'nonce-${nonces[0]}'`)
    }
  })

  test('31.4.5 boot refuses the name of a field that stands in a form with the widget', async () => {
    const { captcha } = stand({ html: () => '<b></b>' })
    const settings = { emailLogin: 'both', passkeysEnabled: true, webauthnRpName: 'Shop', signupWith: ['password', 'passkey'] } as const
    const host = await pages.start({ settings, options: { captcha, captchaWhen: () => true } })
    const names = new Set<string>()
    for (const path of ['/auth/signup', '/auth/login', '/auth/forgot-password']) {
      const { text } = await host.browser().get(path)
      const forms = text.split('<form').filter((form) => form.split('</form>')[0]?.includes('<b></b>'))
      for (const form of forms) for (const [, name = ''] of (form.split('</form>')[0] ?? '').matchAll(/ name="([^"]+)"/g)) names.add(name)
    }
    expect([...names].sort()).toEqual(['captcha_for', 'challenge_token', 'credential', 'email', 'name', 'password', 'remember'])
    for (const field of [...names, 'return_to'])
      await expect(pages.start({ settings, options: { captcha: { ...captcha, field } } })).rejects.toThrow(
        `captcha.field must not be ${field}`,
      )
  })

  test.each(['login', 'email_login'] as const)(
    '31.4.5 either button of the sign-in form takes the answer of its one widget: %s',
    async (sent) => {
      const verify = async (answer: string, _req: Request, { action }: { action: GuardedAction }) => answer === `for ${action}`
      const { captcha } = stand({ ...widget, verify })
      const host = await pages.start({ settings: { emailLogin: 'both' }, options: { captcha, captchaWhen: () => true } })
      const browser = host.browser()
      const { email } = await signedIn(host)
      const page = await browser.get('/auth/login')
      const action = fieldValue(page.text, 'captcha_for') ?? ''
      const path = sent === 'login' ? '/auth/login' : '/auth/email-login/request'
      const form = { email, password, answer: `for ${action}` }
      expect((await sendForm(browser, path, { ...form, captcha_for: action })).status).toBe(303)
      // Without the name of the widget, the answer must be for the action of the path.
      const other = sent === 'login' ? 'email_login' : 'login'
      expect((await sendForm(browser, path, { ...form, answer: `for ${other}` })).status).toBe(400)
      // Only these two share a widget.
      expect((await sendForm(browser, path, { ...form, answer: 'for signup', captcha_for: 'signup' })).status).toBe(400)
    },
  )

  test('31.4.5 a refused form comes again with the widget and every value but secrets; a right answer signs up', async () => {
    const { captcha, asked } = stand(widget)
    const host = await pages.start({ options: { captcha } })
    const browser = host.browser()
    const email = newAddress()
    const refused = await sendForm(browser, '/auth/signup', { email, password, answer: 'wrong' })
    expect([refused.status, problemOf(refused.text)]).toEqual([400, 'Please confirm that you are a person, and try again.'])
    expect(refused.text).toContain('id="widget"')
    expect(refused.text).toContain(`value="${email}"`)
    expect(refused.text).not.toContain(password)
    const sent = await sendForm(browser, '/auth/signup', { email, password, answer: 'right' })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/check-mail'])
    expect((await browser.get('/auth/check-mail')).text).toContain('data-for="link-en-US"')
    const again = await sendForm(browser, '/auth/check-mail', { answer: 'right' })
    expect([again.status, again.headers['location']]).toEqual([303, '/auth/check-mail'])
    const reset = await sendForm(browser, '/auth/forgot-password', { email, answer: 'right' })
    expect(reset.status).toBe(303)
    expect(asked.map(({ action }) => action)).toEqual(['signup', 'signup', 'link', 'link'])
  })
})
