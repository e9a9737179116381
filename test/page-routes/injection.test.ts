import type { Page, Response } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { password } from '../local/people'
import { passkeyOwner } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { type Arrival, type EveryPage, everyPage, everySetting, nameOf } from './every-page'
import { type PagesHost, pagesInChromium, sendInPage } from './pages-in-chromium'

const [database] = await databases()
if (!database) throw new Error('no database')
const largestPage = 30_000
/** Ends the text, the attribute or the element that it stands in. */
const markup = `</textarea></p>"'><script>window.ran = true</script><img src="data:," onerror="window.ran = true">`

function arriveIn(page: Page, { host, url }: PagesHost, { arrive }: EveryPage): Promise<Arrival> {
  return arrive(host, {
    url,
    send: (path, form) => page.request.post(path, { form: { ...form }, headers: { Origin: url } }),
  })
}

async function open(page: Page, { isAfterForm }: EveryPage, { address }: Arrival): Promise<void> {
  await page.goto(address)
  if (isAfterForm) await sendInPage(page)
}

/** Elements that markup made, and whether a script of it ran. */
const traces = (page: Page) => page.evaluate(`[document.querySelectorAll('[onerror], body script').length, window.ran ?? false]`)

/** Puts a script and a handler into the page; returns which directives of its policy stopped them. */
const inject = (page: Page) =>
  page.evaluate(`new Promise((resolve) => {
    const stopped = []
    document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
      stopped.push(effectiveDirective)
      if (stopped.length === 2) resolve(stopped.sort())
    })
    const script = document.createElement('script')
    script.textContent = 'window.ran = true'
    document.body.append(script)
    document.querySelector('main').insertAdjacentHTML('beforeend', '<img src="data:," onerror="window.ran = true">')
  })`)

describe.skipIf(!hasChromium)('in Chromium', { timeout: 120_000 }, () => {
  const { serve, browse } = pagesInChromium(database)

  test.each(everyPage.map((page) => [nameOf(page), page] as const))(
    '%s is one small document with one style sheet and one script; no script runs that gets into it, and markup in a field stays text',
    async (_name, entry) => {
      const served = await serve({ settings: everySetting }, 'localhost') // passkeys need a name
      const page = await browse(served, {}, [/Content Security Policy/])
      const arrival = await arriveIn(page, served, entry)
      const answers: Response[] = []
      page.on('response', (answer) => answers.push(answer))
      await open(page, entry, arrival)
      await page.waitForLoadState('load')
      const seen = answers.map((answer) => ({ answer, type: answer.request().resourceType(), path: new URL(answer.url()).pathname }))
      const loaded = seen
        .filter(({ type, path }) => type !== 'document' && path.startsWith('/'))
        .map(({ path }) => path.replace(/-\w+\./, '.'))
      expect([...new Set(loaded)].sort()).toEqual(['/auth/assets/pages.css', '/auth/assets/pages.js'])
      const documents = seen.filter(({ type }) => type === 'document')
      expect(documents).toHaveLength(entry.isAfterForm ? 2 : 1)
      expect((await documents.at(-1)?.answer.body())?.length).toBeLessThan(largestPage)

      expect(await inject(page)).toEqual(['script-src-attr', 'script-src-elem'])
      expect(await page.evaluate('window.ran ?? false')).toBe(false)

      const forms = await page.locator('main form').count()
      for (let index = 0; index < forms; index += 1) {
        await open(page, entry, arrival)
        const fields = page
          .locator('main form')
          .nth(index)
          .locator('input:not([type="hidden"]):not([type="checkbox"]):not([hidden]):visible')
        if ((await fields.count()) === 0) continue
        for (const field of await fields.all()) await field.fill(markup)
        await Promise.all([
          page.waitForEvent('domcontentloaded'),
          page.evaluate(`document.querySelectorAll('main form')[${index}].submit()`),
        ])
        expect([index, await traces(page)]).toEqual([index, [0, false]])
      }
    },
  )

  test('markup that was stored as name, address, passkey, connection or device stays text on every page of the account', async () => {
    const served = await serve({ settings: everySetting }, 'localhost')
    const { host, url } = served
    const email = `stored-${process.pid}@example.test`
    const stored = `<img src=x onerror=ran=1>${process.pid}@example.test`
    const { userId, passkeyId } = await passkeyOwner(host, { origin: url, changes: { name: markup, email } })
    await host.knex('auth_passkeys').where({ id: passkeyId }).update({ name: markup })
    await addIdentity(host.knex, userId, { email: markup, name: markup })
    await host.browser().post('/auth/login').set('User-Agent', `Firefox/${markup}`).send({ email, password })
    await host.browser().post('/auth/email-login/request').set('User-Agent', markup).send({ email })
    const link = tokenOf(await host.mails.next({ kind: 'email_login', to: email }))

    const page = await browse(served)
    await page.request.post('/auth/login', { data: { email, password } })
    await host.knex('auth_users').where({ id: userId }).update({ email: stored }) // no form takes this address
    const paths = everyPage.filter(({ route }) => route.startsWith('/account')).map(({ route }) => route)
    const presented: string[] = []
    for (const path of [...new Set(paths), `/email-login/${link}`]) {
      await page.goto(`/auth${path}?id=${passkeyId}&provider=corp`)
      expect([path, await traces(page)]).toEqual([path, [0, false]])
      const names = page.locator('main').getByText('ran = true').or(page.locator('main input[value*="ran = true"]'))
      if ((await names.count()) > 0) presented.push(path)
    }
    // The name, the passkey and the connection; the address is at the top of every page.
    const where = ['/account', '/account/profile', '/account/connections', '/account/security', '/account/security/passkeys/rename']
    expect(presented).toEqual(expect.arrayContaining(where))
    await page.goto('/auth/account')
    expect(await page.getByText(stored).count()).toBeGreaterThan(0)
  })
})
