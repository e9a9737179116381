import type { Express } from 'express'
import { describe, expect, test } from 'vitest'
import type { AuthRouter } from '../../src'
import { chromiumPath, hasChromium } from '../demo/chromium'
import { password } from '../local/people'
import { pagesInChromium, sendInPage } from '../page-routes/pages-in-chromium'
import { member } from '../server-session/devices'
import { databases } from '../support/databases'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

/** A page of the host, outside the prefix: its button signs the person out everywhere. */
function hostPages(app: Express, auth: AuthRouter): void {
  app.get('/home', (_req, res) => {
    res
      .type('html')
      .send(
        '<!doctype html><title>Home</title><main><form method="post" action="/leave"><button type="submit">Sign out</button></form></main>',
      )
  })
  app.post('/leave', async (req, res, next) => {
    await auth
      .with(req, res)
      .logOut({ allSessions: true })
      .then(() => res.redirect(303, '/home'), next)
  })
}

describe.skipIf(!hasChromium)(`a sign-out page of the host, in Chromium (${chromiumPath})`, () => {
  const { serve, browse } = pagesInChromium(sqlite)

  test.each(['cookie', 'both', 'session'] as const)(
    'delivery %s: logOut({ allSessions: true }) outside the prefix leaves no session alive, also after the end of the access cookie (25.1.5)',
    async (tokenDelivery) => {
      const served = await serve({ host: hostPages, settings: { tokenDelivery } })
      const { host } = served
      const { email, userId } = await member(host)
      const live = async () => (await host.auth.service.listSessions(userId)).length
      for (const secondsLater of [0, 901]) {
        const page = await browse(served)
        await page.goto('/auth/login')
        await sendInPage(page, { email, password })
        await host.auth.service.logIn({ email, password })
        expect(await live()).toBe(2)
        host.clock.advance(secondsLater)
        // Chromium has the machine's clock, so the access cookie is still there. A person who waited no longer has it.
        if (secondsLater > 0) await page.context().clearCookies({ name: 'access_token' })
        await page.goto('/home')
        await sendInPage(page)
        expect([new URL(page.url()).pathname, await live()]).toEqual(['/home', 0])
        await page.goto('/auth/account')
        expect(new URL(page.url()).pathname).toBe('/auth/login')
      }
    },
  )
})
