import { describe, expect, test } from 'vitest'
import { type LocalHost, otherPassword, password, signedIn } from '../local/people'
import { mfaSettings } from '../mfa/people'
import { passkeySettings } from '../passkeys/people'
import type { Browser } from '../support/app'
import { databases } from '../support/databases'
import { fieldValue, onPages, problemOf, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)
const settings = { ...mfaSettings, ...passkeySettings, emailLogin: 'code' } as const

/** Addresses of the pages that hold forms; whether somebody is signed in. */
const pages: readonly (readonly [path: string, isSignedIn: boolean])[] = [
  ['/login', false],
  ['/signup', false],
  ['/forgot-password', false],
  ['/check-mail', false],
  ['/reauthenticate', true],
  ['/account/profile', true],
  ['/account/email', true],
  ['/account/password', true],
  ['/account/connections', true],
  ['/account/devices', true],
  ['/account/security/authenticator', true],
  ['/account/security/passkeys/add', true],
]

interface Form {
  readonly action: string
  /** As the page filled them. */
  readonly fields: Readonly<Record<string, string>>
}

/** The forms of a page, but the one that signs out. */
function formsOf(html: string, path: string): Form[] {
  return [...html.matchAll(/<form method="post"([^>]*)>([\s\S]*?)<\/form>/g)]
    .map(([, attributes = '', inside = '']) => ({
      action: /action="([^"]*)"/.exec(attributes)?.[1]?.replaceAll('&amp;', '&') ?? path,
      fields: Object.fromEntries([...inside.matchAll(/ name="(\w+)"/g)].map(([, name = '']) => [name, fieldValue(inside, name) ?? ''])),
    }))
    .filter(({ action }) => action !== '/auth/logout')
}

/** What a person types who does everything right. */
function typedInto(name: string, email: string): [name: string, value: string][] {
  if (name === 'new_password' || name === 'confirm_password') return [[name, otherPassword]]
  if (name.includes('password')) return [[name, password]]
  if (name === 'email') return [[name, email]]
  if (name === 'new_email') return [[name, `moved-${email}`]]
  return name === 'name' ? [[name, 'Ada']] : []
}

async function openedBy(host: LocalHost, path: string, isSignedIn: boolean): Promise<{ browser: Browser; forms: Form[]; email: string }> {
  const browser = host.browser()
  const { email } = await signedIn(host)
  if (isSignedIn) await signInByPage(browser, { email, password })
  if (path === '/check-mail') await sendForm(browser, '/auth/forgot-password', { email })
  const page = await browser.get(`/auth${path}`)
  expect([path, page.status]).toEqual([path, 200])
  const forms = formsOf(page.text, `/auth${path}`)
  expect([path, forms.length > 0]).toEqual([path, true])
  return { browser, forms, email }
}

const isPage = (answer: { headers: Record<string, unknown>; text: string }) =>
  String(answer.headers['content-type']).startsWith('text/html') && answer.text.includes('<h1>')

describe.each(pages)('every form of %s', (path, isSignedIn) => {
  test('answers by a page or a redirect, never by 5xx or 401, whatever is sent, and loses nothing', async () => {
    const host = await start({ settings })
    const { browser, forms } = await openedBy(host, path, isSignedIn)
    for (const { action, fields } of forms) {
      const typed = Object.keys(fields).filter((name) => !/form_of|token|credential|enrolment/.test(name))
      const each = (value: string) => Object.fromEntries(typed.map((name) => [name, value]))
      const sent: object[] = [
        {},
        { ...fields, ...each('') },
        { ...fields, ...each('x') },
        { ...fields, ...each('é\u0000<b>') },
        { form_of: fields['form_of'] },
      ]
      for (const body of sent) {
        const answer = await sendForm(browser, action, body)
        expect([action, body, [200, 303, 400, 429].includes(answer.status) ? 'fine' : answer.status]).toEqual([action, body, 'fine'])
        expect([action, answer.status === 303 || isPage(answer)]).toEqual([action, true])
      }
      const large = await sendForm(browser, action, { ...fields, extra: 'x'.repeat(20_000) })
      expect([action, large.status, isPage(large)]).toEqual([action, 413, true])
      const twice = await browser.post(action).set('Sec-Fetch-Site', 'same-origin').type('form').send('email=a&email=b&name=a&name=b')
      expect([action, twice.status, isPage(twice)]).toEqual([action, 400, true])
      const other = await browser.post(action).set('Sec-Fetch-Site', 'same-origin').type('text/plain').send('email=a')
      expect([action, other.status]).toEqual([action, 415])
    }
  })

  test('is refused on the page when another site sends it, and changes nothing', async () => {
    const host = await start({ settings })
    const { browser, forms } = await openedBy(host, path, isSignedIn)
    const before = await host.knex('auth_users')
    for (const { action, fields } of forms) {
      for (const headers of [
        { Origin: 'https://evil.example' },
        { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' },
        { 'Sec-Fetch-Site': 'cross-site' },
      ]) {
        const answer = await browser.post(action).set(headers).type('form').send(fields)
        expect([action, answer.status, problemOf(answer.text)]).toEqual([
          action,
          403,
          'This form was sent from another site. Please send it from here.',
        ])
      }
    }
    expect(await host.knex('auth_users')).toEqual(before)
  })

  test('sent a second time as it was, answers by a page or a redirect, and does nothing twice', async () => {
    const host = await start({ settings })
    const { browser, forms, email } = await openedBy(host, path, isSignedIn)
    for (const { action, fields } of forms) {
      const filled = { ...fields, ...Object.fromEntries(Object.keys(fields).flatMap((name) => typedInto(name, email))) }
      await sendForm(browser, action, filled)
      const rows = () => Promise.all(['auth_users', 'auth_identities', 'auth_passkeys'].map((table) => host.knex(table).count('* as n')))
      const before = await rows()
      const again = await sendForm(browser, action, filled)
      expect([action, [200, 303, 400].includes(again.status) ? 'fine' : again.status]).toEqual([action, 'fine'])
      expect([action, again.status === 303 || isPage(again), await rows()]).toEqual([action, true, before])
    }
  })

  test('says when to try again once there were too many', async () => {
    const routes = { attempts: 3, windowSeconds: 60 }
    const host = await start({
      settings,
      options: {
        throttle: {
          signup: { attempts: 1, windowSeconds: 60 },
          routes,
          links: { attempts: 1, windowSeconds: 60 },
          login: { attempts: 1, windowSeconds: 60 },
        },
      },
    })
    const { browser, forms } = await openedBy(host, path, isSignedIn)
    for (const { action, fields } of forms) {
      const filled = {
        ...fields,
        ...Object.fromEntries(
          Object.keys(fields)
            .filter((name) => /email|password|name|code/.test(name))
            .map((name) => [name, name.includes('email') ? 'a@example.test' : '12345678']),
        ),
      }
      const answers = []
      for (let count = 0; count < 4; count += 1) answers.push(await sendForm(browser, action, filled))
      for (const { status } of answers) expect([action, status < 500 && status !== 401]).toEqual([action, true])
      const refused = answers.filter(({ status }) => status === 429)
      expect([action, refused.length > 0]).toEqual([action, true])
      for (const answer of refused) {
        expect([action, isPage(answer), Number(answer.headers['retry-after']) > 0]).toEqual([action, true, true])
        expect(answer.text).toMatch(/There were too many attempts\. Please try again/)
      }
    }
  })
})

describe.each(pages.filter(([, isSignedIn]) => isSignedIn))('every form of %s, once the session has ended', (path, isSignedIn) => {
  test('leads to the sign-in page and back, and says that nothing was saved', async () => {
    const host = await start({ settings })
    const { browser, forms } = await openedBy(host, path, isSignedIn)
    await host.knex('auth_sessions').update({ revoked_at: host.clock.now().getTime() })
    for (const { action, fields } of forms) {
      const answer = await sendForm(browser, action, fields)
      expect([action, answer.status, String(answer.headers['location']).startsWith('/auth/login?return_to=')]).toEqual([action, 303, true])
    }
    expect((await browser.get('/auth/login')).text).toContain('so what you entered was not saved')
  })
})

describe('signing in as another person', () => {
  test.each(['cookie', 'both', 'session'] as const)('ends the session that the browser had, delivery %s', async (tokenDelivery) => {
    const host = await start({ settings: { tokenDelivery } })
    const [ada, bob] = [await signedIn(host), await signedIn(host)]
    const browser = host.browser()
    await signInByPage(browser, { email: ada.email, password })
    const alive = async ({ userId }: { userId: string }) =>
      (await host.knex('auth_sessions').where({ user_id: userId, revoked_at: null })).length
    const [hers, his] = [await alive(ada), await alive(bob)]
    expect((await browser.get('/auth/login?switch=1')).text).toContain(`You are signed in as ${ada.email}.`)
    await sendForm(browser, '/auth/login', { email: bob.email, password: 'not this one' })
    expect([await alive(ada), await alive(bob)]).toEqual([hers, his])
    expect((await signInByPage(browser, { email: bob.email, password })).status).toBe(303)
    expect([await alive(ada), await alive(bob)]).toEqual([hers - 1, his + 1])
    expect((await browser.get('/auth/account')).text).toContain(bob.email)
  })
})

describe('a form that comes too often', () => {
  test('is refused with what was typed, as often as its page may be viewed; above that by a page without it', async () => {
    const host = await start({ settings, options: { throttle: { routes: { attempts: 3, windowSeconds: 60 } } } })
    const { browser, forms } = await openedBy(host, '/account/profile', true)
    const save = (name: string) => sendForm(browser, '/auth/account/profile', { ...forms[0]?.fields, name })
    for (const name of ['One', 'Two', 'Three']) expect((await save(name)).status).toBe(303)
    for (const _ of ['second view', 'third view']) {
      const refused = await save('Four')
      expect([refused.status, fieldValue(refused.text, 'name'), problemOf(refused.text)]).toEqual([
        429,
        'Four',
        expect.stringContaining('too many'),
      ])
    }
    const plain = await save('Four')
    expect([plain.status, isPage(plain), fieldValue(plain.text, 'name')]).toEqual([429, true, null])
    host.clock.advance(61)
    expect((await save('Four')).status).toBe(303)
  })
})
