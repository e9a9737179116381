import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createKnexStore, errors } from '../../src'
import { type LocalHost, type LocalOptions, password, signedIn } from '../local/people'
import { type Browser, baseUrl } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { faultyStore } from '../support/faulty-store'
import { mountedRoutes } from '../support/mounted-routes'
import { type Arrival, type EveryPage, everyPage, everySetting, formPages, nameOf, typedInto } from './every-page'
import { fieldValue, onPages, problemOf, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start, opened } = onPages(database)
const startEvery = ({ settings, ...options }: LocalOptions = {}) => start({ settings: { ...everySetting, ...settings }, ...options })

interface Field {
  readonly name: string
  /** As the page filled it. */
  readonly value: string
  /** Null: nobody types into it. */
  readonly isSecret: boolean | null
  readonly isRequired: boolean
}

interface Form {
  readonly action: string
  readonly fields: readonly Field[]
}

/** The forms of a page, without the button at its top that logs out. */
function formsOf(html: string, address: string): Form[] {
  const [, main = ''] = html.split('<main')
  return [...main.matchAll(/<form method="post"([^>]*)>([\s\S]*?)<\/form>/g)].flatMap(([, attributes = '', inside = '']) => [
    {
      action: /action="([^"]*)"/.exec(attributes)?.[1]?.replaceAll('&amp;', '&') ?? address,
      fields: [...inputsOf(inside), ...firstButtonOf(inside)],
    },
    // A second button that sends the form elsewhere, without asking for what the first button needs.
    ...[...inside.matchAll(/ formaction="([^"]*)" formnovalidate/g)].map(([, action = '']) => ({
      action: action.replaceAll('&amp;', '&'),
      fields: inputsOf(inside).map((field) => ({ ...field, isRequired: field.name === 'email' })),
    })),
  ])
}

function inputsOf(inside: string): Field[] {
  const secrets = new Set(
    [...inside.matchAll(/<div class="(?:field code|secret)">[\s\S]*?<input[^>]* name="(\w+)"/g)].map(([, name]) => name),
  )
  return [...inside.matchAll(/<input[^>]* name="(\w+)"[^>]*>/g)].map(([tag, name = '']) => ({
    name,
    value: tag.includes('type="checkbox"') ? 'on' : (fieldValue(inside, name) ?? ''),
    isSecret: / type="hidden"| hidden|checkbox/.test(tag) ? null : secrets.has(name) || tag.includes('type="password"'),
    isRequired: tag.includes(' required'),
  }))
}

/** The Enter key presses the first button. */
function firstButtonOf(inside: string): Field[] {
  const [, name, value = ''] = /<button type="submit"[^>]*?(?: name="(\w+)" value="(\w+)")?>/.exec(inside) ?? []
  return name === undefined ? [] : [{ name, value, isSecret: null, isRequired: false }]
}

/** What the browser sends: the form as it is, with what `type` says of each field that a person types into. */
function filledIn({ fields }: Form, type: (field: Field) => string | null): Record<string, string> {
  return Object.fromEntries(fields.map((field) => [field.name, (field.isSecret === null ? null : type(field)) ?? field.value]))
}

interface Opened {
  readonly browser: Browser
  readonly forms: readonly Form[]
  readonly arrival: Arrival
}

async function open(host: LocalHost, page: EveryPage): Promise<Opened> {
  const browser = host.browser()
  const arrival = await page.arrive(host, { url: baseUrl, send: (path, fields) => sendForm(browser, path, fields) })
  const { address } = arrival
  let presented = await browser.get(address)
  const [first] = formsOf(presented.text, address)
  if (page.isAfterForm && first)
    presented = await sendForm(
      browser,
      address,
      filledIn(first, () => null),
    )
  expect([nameOf(page), presented.status]).toEqual([nameOf(page), 200])
  return { browser, arrival, forms: formsOf(presented.text, address) }
}

const isPage = ({ headers, text }: supertest.Response) => String(headers['content-type']).startsWith('text/html') && text.includes('<h1>')

/** What a form that is shown again has lost of what was sent; which secrets it shows. Null: it is not shown again. */
function lostBy(answer: supertest.Response, { action, fields }: Form, sent: Readonly<Record<string, string>>): string[] | null {
  const names = fields.map(({ name }) => name).join()
  const again = formsOf(answer.text, action).find((form) => form.action === action && form.fields.map(({ name }) => name).join() === names)
  if (!again) return null
  const typed = fields.filter(({ name, isSecret }) => isSecret !== null && (sent[name] ?? '') !== '')
  const lost = typed.filter(({ name, isSecret }) => !isSecret && again.fields.find((field) => field.name === name)?.value !== sent[name])
  const told = typed.filter(({ name, isSecret }) => isSecret && answer.text.includes(sent[name] ?? ''))
  return [...lost, ...told].map(({ name }) => name)
}

/** Below the prefix, with the route's pattern in the place of a token. */
function routeOf(action: string): string {
  const path = action.split('?', 1)[0]?.replace('/auth', '') ?? ''
  return everyPage.map(({ route }) => route).find((route) => new RegExp(`^${route.replace(':token', '[\\w-]{20,}')}$`).test(path)) ?? path
}

test('these are all pages and all forms: the ones that are mounted', { timeout: 120_000 }, async () => {
  const host = await startEvery()
  const mounted = mountedRoutes.flat()
  const pagesBy = (method: string) => mounted.filter((route) => route.method === method && route.describes.isPage === true)
  const ofOthers = ['/mfa/verify'] // what a host's own page posts to
  const paths = pagesBy('GET').map(({ path }) => path)
  const posted = pagesBy('POST').flatMap(({ path }) => (ofOthers.includes(path) ? [] : [path]))
  const actions: string[] = []
  for (const page of formPages) for (const { action } of (await open(host, page)).forms) actions.push(routeOf(action))
  const unique = (paths: readonly string[]) => [...new Set(paths)].sort()
  expect(unique(actions)).toEqual(unique(posted))
  expect(unique([...everyPage.map(({ route }) => route), ...actions])).toEqual(unique([...paths, ...posted]))
})

describe.each(formPages.map((page) => [nameOf(page), page] as const))('every form of %s', { timeout: 60_000 }, (_name, page) => {
  test('whatever is missing, wrong or too much: a page says so and keeps what was typed, but no secret', async () => {
    const host = await startEvery()
    const { browser, forms, arrival } = await open(host, page)
    for (const form of forms) {
      const { action, fields } = form
      const right = ({ name }: Field) => typedInto(name, arrival)
      const typed = fields.filter(({ isSecret }) => isSecret !== null)
      const refused: Record<string, string>[] = [
        ...typed
          .filter(({ isRequired }) => isRequired)
          .map((empty) => filledIn(form, (field) => (field.name === empty.name ? '' : right(field)))),
        ...(typed.length > 0 ? [filledIn(form, (field) => (field.isSecret ? `wrong one ${field.name}` : 'x'.repeat(3_000)))] : []),
      ]
      for (const sent of refused) {
        const answer = await sendForm(browser, action, sent)
        expect([action, sent, answer.status, isPage(answer)]).toEqual([action, sent, 400, true])
        expect([action, sent, lostBy(answer, form, sent)]).toEqual([action, sent, []])
        expect([action, sent, /aria-invalid="true"|class="problem"/.test(answer.text)]).toEqual([action, sent, true])
      }
      const large = await sendForm(browser, action, { ...filledIn(form, () => null), extra: 'x'.repeat(20_000) })
      expect([action, large.status, isPage(large)]).toEqual([action, 413, true])
      const [own] = fields
      if (own) {
        const twice = await sendForm(browser, action, `${own.name}=a&${own.name}=b` as never)
        expect([action, twice.status, isPage(twice)]).toEqual([action, 400, true])
      }
      const other = await browser.post(action).set('Sec-Fetch-Site', 'same-origin').type('text/plain').send('email=a')
      expect([action, other.status]).toEqual([action, 415])
      const hidden = fields.find(({ name }) => name === 'form_of')
      const odd: object[] = [
        filledIn(form, () => 'é\u0000<b>'),
        { form_of: hidden?.value },
        Object.fromEntries(fields.map(({ name }) => [name, 'x'])),
        {},
      ]
      for (const sent of odd) {
        const answer = await sendForm(browser, action, sent)
        expect([action, sent, [200, 303, 400, 429].includes(answer.status) ? 'fine' : answer.status]).toEqual([action, sent, 'fine'])
        expect([action, answer.status === 303 || isPage(answer)]).toEqual([action, true])
      }
    }
  })

  test('sent a second time as it was, answers by a page or a redirect, and does nothing twice', async () => {
    const host = await startEvery()
    const { browser, forms, arrival } = await open(host, page)
    for (const form of forms) {
      const { action } = form
      const sent = filledIn(form, ({ name }) => typedInto(name, arrival))
      await sendForm(browser, action, sent)
      const rows = () => Promise.all(['auth_users', 'auth_identities', 'auth_passkeys'].map((table) => host.knex(table).count('* as n')))
      const before = await rows()
      const again = await sendForm(browser, action, sent)
      expect([action, [200, 303, 400].includes(again.status) ? 'fine' : again.status]).toEqual([action, 'fine'])
      expect([action, again.status === 303 || isPage(again), await rows()]).toEqual([action, true, before])
    }
  })

  test('says when to try again once there were too many, and keeps what was typed', async () => {
    const few = { attempts: 4, windowSeconds: 60 }
    const host = await startEvery({ options: { throttle: { signup: few, routes: few, links: few, login: few, mfa: few } } })
    const { browser, forms, arrival } = await open(host, page)
    for (const form of forms) {
      const { action, fields } = form
      const isTyped = fields.some(({ isSecret }) => isSecret !== null)
      const { form_of: own, ...others } = filledIn(form, ({ name }) => typedInto(name, arrival))
      const sent = { ...others, ...(isTyped && own !== undefined && { form_of: own }) } // what only a button does must not be done
      const answers = []
      for (let count = 0; count < 8; count += 1) answers.push(await sendForm(browser, action, sent))
      for (const { status } of answers) expect([action, status < 500 && status !== 401]).toEqual([action, true])
      const refused = answers.filter(({ status }) => status === 429)
      expect([action, refused.length > 0]).toEqual([action, page.route !== '/logout'])
      for (const answer of refused) {
        expect([action, isPage(answer), Number(answer.headers['retry-after']) > 0]).toEqual([action, true, true])
        expect(answer.text).toContain('There were too many')
        expect([action, lostBy(answer, form, sent) ?? []]).toEqual([action, []])
      }
    }
  })

  test('while the store does not answer, is a page with status 503 in the person’s language, and keeps what was typed', async () => {
    const faulty = faultyStore(createKnexStore({ knex: opened().knex }))
    const host = await startEvery({ options: { store: faulty.store } })
    const { browser, forms, arrival } = await open(host, page)
    faulty.break('every verb', () => Promise.reject(new errors.ServiceUnavailableError()))
    const isUnavailable = (answer: supertest.Response) => {
      expect([answer.status, isPage(answer), Number(answer.headers['retry-after']) > 0]).toEqual([503, true, true])
      expect(answer.text).toContain('lang="pt-BR"')
      expect(answer.text).toMatch(/Isto não está funcionando no momento|Tente de novo daqui a pouco/)
    }
    if (page.needsLogin) isUnavailable(await browser.get(arrival.address).set('Accept-Language', 'pt-BR'))
    for (const form of forms) {
      if (/\/passkeys\/login$|\/signup\/passkey$/.test(form.action)) continue // without a passkey it asks the store for nothing
      const sent = filledIn(form, ({ name }) => typedInto(name, arrival))
      const answer = await sendForm(browser, form.action, sent).set('Accept-Language', 'pt-BR')
      isUnavailable(answer)
      expect([form.action, lostBy(answer, form, sent) ?? []]).toEqual([form.action, []])
    }
  })
})

test('while the shared counters do not answer, the pages and their forms work', async () => {
  const down = () => Promise.reject(new Error('the counters are down'))
  const host = await startEvery({ options: { throttle: { counters: { increment: down, decrement: down, reset: down } } } })
  const browser = host.browser()
  const { email } = await signedIn(host)
  expect((await browser.get('/auth/login')).status).toBe(200)
  expect((await signInByPage(browser, { email, password })).headers['location']).toBe('/auth/account')
  const { text } = await browser.get('/auth/account/profile')
  const saved = await sendForm(browser, '/auth/account/profile', { form_of: fieldValue(text, 'form_of'), name: 'Ada' })
  expect([saved.status, saved.headers['location']]).toEqual([303, '/auth/account/profile'])
})

test.each(formPages.map((page) => [nameOf(page), page] as const))(
  'no form of %s does anything when another site sends it',
  async (_name, page) => {
    const host = await startEvery()
    const { browser, forms, arrival } = await open(host, page)
    const rows = async () => {
      const tables = ['auth_users', 'auth_identities', 'auth_passkeys', 'auth_user_tokens', 'auth_email_logins']
      const sessions = host.knex('auth_sessions').select('id', 'revoked_at')
      return [host.mails.mails.length, await sessions, ...(await Promise.all(tables.map((table) => host.knex(table))))]
    }
    const before = await rows()
    for (const form of forms) {
      for (const headers of [
        { Origin: 'https://evil.example' },
        { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' },
        { 'Sec-Fetch-Site': 'cross-site' },
      ]) {
        const answer = await browser
          .post(form.action)
          .set({ ...headers, ...oldBrowser })
          .type('form')
          .send(filledIn(form, ({ name }) => typedInto(name, arrival)))
        expect([form.action, answer.status, isPage(answer)]).toEqual([form.action, 403, true])
        expect(answer.text).toContain('This form was sent from another site')
      }
    }
    expect(await rows()).toEqual(before)
  },
)

const ofAccount = formPages.filter(({ needsLogin, route }) => needsLogin && route !== '/logout')

test.each(ofAccount.map((page) => [nameOf(page), page] as const))(
  'every form of %s, once the session has ended, leads to the sign-in page and back, and says that nothing was saved',
  async (_name, page) => {
    const host = await startEvery()
    const { browser, forms, arrival } = await open(host, page)
    await host.knex('auth_sessions').update({ revoked_at: host.clock.now().getTime() })
    for (const form of forms) {
      const answer = await sendForm(
        browser,
        form.action,
        filledIn(form, ({ name }) => typedInto(name, arrival)),
      )
      expect([form.action, answer.status, String(answer.headers['location']).startsWith('/auth/login?return_to=')]).toEqual([
        form.action,
        303,
        true,
      ])
    }
    expect((await browser.get('/auth/login')).text).toContain('so what you entered was not saved')
  },
)

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

test('signing out has no such limit: a person can always leave a shared computer', async () => {
  const host = await startEvery({ options: { throttle: { routes: { attempts: 1, windowSeconds: 60 } } } })
  for (const _ of ['within the limit', 'past it']) {
    const { email, userId } = await signedIn(host)
    const living = async () => (await host.knex('auth_sessions').where({ user_id: userId, revoked_at: null })).length
    const browser = host.browser()
    expect((await browser.post('/auth/login').send({ email, password })).status).toBe(200)
    const before = await living()
    const { status, headers } = await sendForm(browser, '/auth/logout')
    expect([status, headers['location'], before - (await living())]).toEqual([303, '/auth/signed-out', 1])
    expect(String(headers['set-cookie'])).toContain('refresh_token=;')
  }
})

test('a form that comes too often is shown with what was typed, as often as its page may be viewed; after that a page without it is', async () => {
  const host = await startEvery({ options: { throttle: { routes: { attempts: 3, windowSeconds: 60 } } } })
  const browser = host.browser()
  await signInByPage(browser, { email: (await signedIn(host)).email, password })
  const form_of = fieldValue((await browser.get('/auth/account/profile')).text, 'form_of')
  const save = (name: string) => sendForm(browser, '/auth/account/profile', { form_of, name })
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
