import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContext, CDPSession, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { type LocalHost, password, post } from '../local/people'
import { authenticator as authenticatorApp } from '../mfa/authenticator'
import { member } from '../server-session/devices'
import { chromiumHosts } from '../support/chromium-hosts'
import { databases } from '../support/databases'
import { age, onPasskeys, rejected, withFactors } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

/** The script that docs/passkeys.md gives to hosts, whose functions the tests call. */
const documented = /<script type="module">([\s\S]*?)<\/script>/.exec(
  readFileSync(join(import.meta.dirname, '../../docs/passkeys.md'), 'utf8'),
)?.[1]
const html = `<!doctype html><title>A page</title><input autocomplete="username webauthn"><script type="module">${documented}
  const answerTo = (options) => navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
  Object.assign(window, { post, addPasskey, signIn, answerTo })
</script>`

describe.skipIf(!hasChromium).each([
  { tokenDelivery: 'cookie', cookie: 'access_token' },
  { tokenDelivery: 'session', cookie: 'auth_session' },
] as const)('passkeys in Chromium, in delivery $tokenDelivery', { timeout: 60_000 }, ({ tokenDelivery, cookie }) => {
  const { start } = onPasskeys(sqlite)
  const { listen, newContext } = chromiumHosts()

  /** A host at a port of this machine, and a person who is signed in there in a browser with an authenticator. */
  async function scene() {
    const { server, url } = await listen('localhost')
    const host = await start({
      settings: { ...withFactors, tokenDelivery, oauthRedirectBaseUrl: url },
      options: { throttle: { mail: false, login: false } },
      host: (app) => app.get('/page', (_req, res) => void res.type('html').send(html)),
    })
    server.on('request', host.app)
    const context = await newContext({ baseURL: url })
    const person = await member(host)
    const tab = await openTab(context)
    await run(tab.page, `post('/login', ${JSON.stringify({ email: person.email, password })})`)
    return { host, url, context, person, ...tab }
  }

  /** Each tab has its own virtual authenticator: that is how Chromium has them. */
  async function openTab(context: BrowserContext) {
    const page = await context.newPage()
    await page.goto('/page')
    await page.waitForFunction("typeof signIn === 'function'")
    const cdp = await context.newCDPSession(page)
    await cdp.send('WebAuthn.enable', { enableUI: false })
    const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
    return { page, cdp, authenticatorId }
  }

  /** A line of script of the page, whose names are those of its functions. */
  // biome-ignore lint/suspicious/noExplicitAny: what the page answers
  const run = (page: Page, code: string): Promise<any> => page.evaluate(code)
  const refusalOf = (page: Page, deed: string) =>
    run(page, `(async () => { try { await (${deed}); return null } catch (error) { return error.message } })()`)

  /** What the browser answers to options that a page got; `changes`: of the options. */
  const assertionOf = (page: Page, options: object, changes: object = {}): Promise<object> =>
    run(page, `answerTo(${JSON.stringify({ ...options, ...changes })}).then((credential) => credential.toJSON())`)

  const credentialsOf = async ({ cdp, authenticatorId }: { cdp: CDPSession; authenticatorId: string }) =>
    (await cdp.send('WebAuthn.getCredentials', { authenticatorId })).credentials
  const signedInAs = async (context: BrowserContext, name: string) =>
    (await context.cookies()).some((one) => one.name === name && one.value !== '')
  const signOut = async (context: BrowserContext) => context.clearCookies()
  const loginOptionsOf = async (host: LocalHost) => (await post(host, '/passkeys/login/options')).body
  const finish = (host: LocalHost, credential: object, token: string) =>
    post(host, '/passkeys/login', { credential, challenge_token: token }, { 'X-Requested-With': 'fetch' })

  test('a person adds a passkey, signs in by a button and by autofill, and removes it', async () => {
    const { host, context, page, person, ...tab } = await scene()
    const added = await run(page, "addPasskey('laptop')")
    expect(added).toMatchObject({ name: 'laptop', is_backed_up: false })
    expect(await credentialsOf(tab)).toMatchObject([{ isResidentCredential: true, rpId: 'localhost' }])
    expect(await refusalOf(page, 'addPasskey()')).toMatch(/excluded|registered|previously/i) // the browser's own words

    for (const mediation of ['optional', 'conditional']) {
      await signOut(context)
      const login = await run(page, `signIn('${mediation}')`)
      expect([login.user_id, await signedInAs(context, cookie)]).toEqual([person.userId, true])
    }

    await age(host, added.id)
    await signOut(context)
    await run(page, 'signIn()')
    const request = `{ method: 'DELETE', headers: { 'Content-Type': 'application/json', 'X-Requested-With': 'fetch' }, body: '{}' }`
    const removed = await run(page, `fetch('/auth/passkeys/${added.id}', ${request}).then(({ status }) => status)`)
    expect(removed).toBe(204)
    expect(await refusalOf(page, 'signIn()')).toBe('PASSKEY_REJECTED')
  })

  test('the second step of a login', async () => {
    const { host, context, page, person } = await scene()
    await run(page, 'addPasskey()')
    const { secret } = await host.auth.service.enrollTotp(person.userId)
    await host.auth.service.confirmTotp({ userId: person.userId, code: authenticatorApp(secret, host.clock).code() })
    await signOut(context)
    const challenge = await run(page, `post('/login', ${JSON.stringify({ email: person.email, password })})`)
    expect(challenge).toMatchObject({ mfa_required: true, mfa_methods: ['otp', 'passkey'] })
    expect(await signedInAs(context, cookie)).toBe(false)
    const done = await run(
      page,
      `(async (mfa_token) => {
        const { challenge_token, ...options } = await post('/mfa/passkey/options', { mfa_token })
        return post('/mfa/verify', { mfa_token, credential: await answerTo(options), challenge_token })
      })('${challenge.mfa_token}')`,
    )
    expect(done).toMatchObject({ user_id: person.userId, mfa_required: false })
    expect(await signedInAs(context, cookie)).toBe(true)
  })

  test('what was signed without a look at its user, for another origin, or before is refused', async () => {
    const { host, context, page, cdp, authenticatorId } = await scene()
    await run(page, 'addPasskey()')
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
    const options = await loginOptionsOf(host)
    const unverified = await assertionOf(page, options, { userVerification: 'discouraged' })
    expect((await finish(host, unverified, options.challenge_token)).body.code).toBe(rejected[1])
    expect(await refusalOf(page, 'signIn()')).not.toBeNull() // the browser asks nobody, as the options say
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })

    // The same RP id, at another port.
    const elsewhere = await listen('localhost')
    elsewhere.server.on('request', host.app)
    const foreign = await openTab(await newContext({ baseURL: elsewhere.url }))
    for (const credential of await credentialsOf({ cdp, authenticatorId }))
      await foreign.cdp.send('WebAuthn.addCredential', { authenticatorId: foreign.authenticatorId, credential })
    const lured = await assertionOf(foreign.page, options)
    expect((await finish(host, lured, options.challenge_token)).body.code).toBe(rejected[1])

    const own = await assertionOf(page, options)
    expect((await finish(host, own, options.challenge_token)).status).toBe(200)
    expect((await finish(host, own, options.challenge_token)).body.code).toBe(rejected[1])
    const again = await assertionOf(page, options)
    expect((await finish(host, again, options.challenge_token)).body.code).toBe(rejected[1])
    expect(context.pages()).toHaveLength(1)
  })

  test('two tabs: each finishes what it began, and of one challenge one does', async () => {
    const { host, context, person, ...first } = await scene()
    await run(first.page, 'addPasskey()')
    const second = await openTab(context)
    for (const credential of await credentialsOf(first))
      await second.cdp.send('WebAuthn.addCredential', { authenticatorId: second.authenticatorId, credential })
    await signOut(context)
    const both = [await loginOptionsOf(host), await loginOptionsOf(host)]
    // The counter of each authenticator goes on by itself; the one that is behind would be refused as a copy.
    await host.knex('auth_passkeys').where({ user_id: person.userId }).update({ sign_count: 0 })
    const presented = [await assertionOf(first.page, both[0]), await assertionOf(second.page, both[1])]
    const answers = []
    for (const place of [0, 1]) {
      await host.knex('auth_passkeys').where({ user_id: person.userId }).update({ sign_count: 0 })
      answers.push((await finish(host, presented[place] as object, both[place].challenge_token)).status)
    }
    expect(answers).toEqual([200, 200])

    const one = await loginOptionsOf(host)
    const twice = [await assertionOf(first.page, one), await assertionOf(second.page, one)]
    const statuses = await Promise.all(twice.map(async (credential) => (await finish(host, credential, one.challenge_token)).status))
    expect(statuses.sort()).toEqual([200, 401])
  })
})
