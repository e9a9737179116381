import type { Request } from 'express'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Captcha, GuardedAction } from '../../src'
import { requireCaptcha } from '../../src/captcha/require-captcha'
import { newAddress, onLocal, password, post } from '../local/people'
import { onPages, problemOf, sendForm } from '../page-routes/people'
import { passkeySettings } from '../passkeys/people'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)
const pages = onPages(sqlite)
afterEach(() => vi.useRealTimers())

function stand(more: Partial<Captcha> = {}) {
  const asked: GuardedAction[] = []
  const captcha: Captcha = {
    verify: async (answer, _req, { action }) => {
      asked.push(action)
      return answer === 'right'
    },
    html: () => '<b id="widget"></b>',
    ...more,
  }
  return { captcha, asked }
}

describe('every way to an action that is asked', () => {
  const shown = { credential: {}, challenge_token: 'none' }
  const routes: Readonly<Record<string, GuardedAction>> = {
    '/signup/passkey': 'signup',
    '/cookie/signup/passkey': 'signup',
    '/passkeys/login': 'login',
    '/cookie/passkeys/login': 'login',
    '/session/passkeys/login': 'login',
  }

  test('31.4.1 the routes of passkeys ask before they look at the passkey', async () => {
    const { captcha, asked } = stand()
    const settings = { tokenDelivery: 'both', signupWith: ['password', 'passkey'], ...passkeySettings } as const
    const host = await start({ settings, options: { captcha, captchaWhen: () => true } })
    for (const [path, action] of Object.entries(routes)) {
      const body = { ...(action === 'signup' && { email: newAddress() }), ...shown }
      expect([path, (await post(host, path, body)).body.code]).toEqual([path, 'CAPTCHA_REQUIRED'])
      expect([path, (await post(host, path, { ...body, captcha: 'wrong' })).body.code]).toEqual([path, 'CAPTCHA_REQUIRED'])
      const passed = await post(host, path, { ...body, captcha: 'right' })
      expect([path, passed.body.code]).toEqual([path, action === 'signup' ? 'PASSKEY_INVALID' : 'PASSKEY_REJECTED'])
      expect(asked.splice(0)).toEqual([action, action])
    }
  })

  test('31.4.2 the limit of the route comes first: wrong answers of one client cannot ask a third party without end', async () => {
    const { captcha, asked } = stand()
    const throttle = { routes: { attempts: 3, windowSeconds: 60 } }
    const settings = { emailLogin: 'both', emailLoginUrlTemplate: 'https://app.example.com/email-login?token={token}' } as const
    const host = await start({ settings, options: { captcha, captchaWhen: () => true, throttle } })
    for (const path of ['/signup', '/login', '/activation/request', '/password-reset/request', '/email-login/request']) {
      const statuses: number[] = []
      for (let times = 0; times < 4; times++)
        statuses.push((await post(host, path, { email: newAddress(), password, captcha: 'wrong' })).status)
      expect([path, ...statuses]).toEqual([path, 403, 403, 403, 429])
    }
    expect(asked).toHaveLength(15)
  })

  const sentence = 'Please confirm that you are a person, and try again.'
  const forms: readonly [string, GuardedAction, object][] = [
    ['/auth/signup', 'signup', { email: 'ana@example.test', password }],
    ['/auth/signup/passkey', 'signup', { email: 'ana@example.test', credential: '{}', challenge_token: 'none' }],
    ['/auth/login', 'login', { email: 'ana@example.test', password }],
    ['/auth/passkeys/login', 'login', { credential: '{}', challenge_token: 'none' }],
    ['/auth/forgot-password', 'link', { email: 'ana@example.test' }],
    ['/auth/email-login/request', 'email_login', { email: 'ana@example.test' }],
  ]

  test.each(forms)('31.4.5 the form of %s asks for %s, and comes again with the widget', async (path, action, fields) => {
    const { captcha, asked } = stand()
    const settings = { emailLogin: 'both', signupWith: ['password', 'passkey'], ...passkeySettings } as const
    const host = await pages.start({ settings, options: { captcha, captchaWhen: () => true } })
    for (const answer of [{}, { captcha: '' }, { captcha: 'wrong' }]) {
      const refused = await sendForm(host.browser(), path, { ...fields, ...answer })
      expect([refused.status, problemOf(refused.text)]).toEqual([400, sentence])
      expect(refused.text).toContain('id="widget"')
      expect(refused.text).not.toContain(password)
    }
    expect(asked).toEqual([action])
    const twice = await sendForm(host.browser(), path, { ...fields, captcha: ['right', 'right'] })
    expect([twice.status, asked.splice(0)]).toEqual([400, [action]])
    expect(problemOf((await sendForm(host.browser(), path, { ...fields, captcha: 'right' })).text)).not.toBe(sentence)
    expect(asked).toEqual([action])
  })

  test.each(['forgotPassword', 'emailLogin'])('31.4.5 “send again” asks after %s', async (from) => {
    const { captcha, asked } = stand()
    const host = await pages.start({ settings: { emailLogin: 'both' }, options: { captcha } })
    const browser = host.browser()
    const path = from === 'emailLogin' ? '/auth/email-login/request' : '/auth/forgot-password'
    await sendForm(browser, path, { email: newAddress(), captcha: 'right' })
    expect((await sendForm(browser, '/auth/check-mail', {})).status).toBe(400)
    expect((await sendForm(browser, '/auth/check-mail', { captcha: 'wrong' })).status).toBe(400)
    expect((await sendForm(browser, '/auth/check-mail', { captcha: 'right' })).status).toBe(303)
    const action = from === 'emailLogin' ? 'email_login' : 'link'
    expect(asked).toEqual([action, action, action])
  })
})

describe('a captcha that never answers', () => {
  const never = () => new Promise<never>(() => undefined)
  const ask = async (options: Partial<Captcha>, captchaWhen: (() => Promise<boolean>) | null = null) => {
    vi.useFakeTimers()
    const { captcha } = stand(options)
    const outcome = requireCaptcha({ captcha, captchaWhen, logger: logTap() }, {} as Request, 'signup', 'wrong').then(
      () => 'passed',
      ({ code }) => code,
    )
    await vi.advanceTimersByTimeAsync(5_000)
    return outcome
  }

  test('31.4.4 verify has 5 seconds: then 503, or a pass with failOpen', async () => {
    expect(await ask({ verify: never })).toBe('CAPTCHA_UNAVAILABLE')
    expect(await ask({ verify: never, failOpen: true })).toBe('passed')
  })

  test('31.4.1 captchaWhen has 5 seconds: then the captcha is asked, also with failOpen', async () => {
    expect(await ask({}, never)).toBe('CAPTCHA_REQUIRED')
    expect(await ask({ failOpen: true }, never)).toBe('CAPTCHA_REQUIRED')
  })
})
