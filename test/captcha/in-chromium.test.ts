import { describe, test } from 'vitest'
import { proofOfWork } from '../../src'
import { hasChromium } from '../demo/chromium'
import { newAddress, password } from '../local/people'
import { pagesInChromium } from '../page-routes/pages-in-chromium'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'

const [database] = await databases()
if (!database) throw new Error('no database')

describe.skipIf(!hasChromium)('proofOfWork() in Chromium', { timeout: 60_000 }, () => {
  const { serve, browse } = pagesInChromium(database)

  test('31.4.7 the script of our pages solves the puzzle of each form, also of a login by mail and by passkey', async () => {
    const site = await serve({
      settings: { emailLogin: 'both' },
      options: { captcha: proofOfWork({ bits: 12 }), captchaWhen: () => true },
    })
    const page = await browse(site)
    const email = newAddress()
    await page.goto('/auth/signup')
    await page.fill('[name=email]', email)
    await page.fill('[name=password]', password)
    await Promise.all([page.waitForURL('**/check-mail'), page.click('main form button[type=submit]')])
    const mailed = { to: email, kind: 'activation' } as const
    await site.host.mails.next(mailed)
    await Promise.all([page.waitForEvent('domcontentloaded'), page.click('main form button.second')]) // once more
    await page.goto(`/auth/activate/${tokenOf(await site.host.mails.next(mailed))}`)
    await Promise.all([page.waitForEvent('domcontentloaded'), page.click('main form button[type=submit]')])
    await page.goto('/auth/login?switch=1')
    await page.fill('[name=email]', email)
    await page.fill('[name=password]', password)
    await Promise.all([page.waitForURL('**/account'), page.click('main form button[type=submit]')])
    const other = await browse(site)
    await other.goto('/auth/login')
    await other.fill('[name=email]', email)
    await Promise.all([other.waitForURL('**/check-mail'), other.click('button[formaction]')])
  })
})
