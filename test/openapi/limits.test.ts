import { join } from 'node:path'
import { expect, test } from 'vitest'
import { descriptionOf } from '../../src/http/description'
import type { Route } from '../../src/http/routes'
import { appPerTest } from '../support/app-per-test'
import { mountedRoutes } from '../support/mounted-routes'
import { everything } from './configurations'

const start = appPerTest()
const page = join(import.meta.dirname, '../../docs/limits.md')

/** `npx vitest run --config test/vitest.config.mts test/openapi/limits.test.ts -u` writes the page anew. */
test('docs/limits.md says of every route which rate limits hold, as the router has them', async () => {
  await start({ ...everything, settings: { ...everything.settings, oauthErrorRedirect: null } })
  const rows = mountedRoutes
    .flat()
    .map(rowOf)
    .toSorted((one, other) => one.localeCompare(other))

  expect(rows.length).toBeGreaterThan(50)
  expect(rows.filter((row) => row.includes('route limit')).length).toBeGreaterThan(20)
  await expect(`${intro}${[...new Set(rows)].join('\n')}\n`).toMatchFileSnapshot(page)
})

/** What a line's own refusals say of the limits behind it. */
const byCode: Readonly<Record<string, string>> = {
  LOGIN_THROTTLED: '`throttle.login`',
  SIGNUP_THROTTLED: '`throttle.signup`',
  MFA_THROTTLED: '`throttle.mfa`',
}

function rowOf({ method, path, before = [], describes }: Route): string {
  const described = before.map(descriptionOf)
  const routeLimits = [...described, describes].flatMap((each) => each?.limit ?? []).map((name) => `route limit \`${name}\``)
  const own = (describes.refuses ?? []).flatMap(({ code }) => byCode[code] ?? [])
  const links = path.endsWith('/request') ? ['`throttle.links`'] : [] // every request for a link is called so
  const limits = [...new Set([...routeLimits, ...own, ...links])]
  return `| \`${method} ${path}\` | ${limits.length === 0 ? 'none' : limits.join(', ')} |`
}

const intro = `# Rate limits

Which limit holds for a route, what it counts, and what a refusal costs. Set limits with [\`throttle\`](configuration.md#throttle), and share them between
processes with [counters](configuration.md#counters).

## Kinds

| Limit | Counts | By default | Refusal |
|---|---|---|---|
| route limit (\`throttle.routes\`) | requests of one client to one route; routes below \`/cookie\` share the limit of the route they double | 60 in 60 s | 429 \`TOO_MANY_REQUESTS\`, before anything that costs |
| \`throttle.login\` | failed logins; right ones are given back. [Which](accounts.md#budgets) | see there | 429 \`LOGIN_THROTTLED\`, before the password is looked at |
| \`throttle.signup\` | sign-ups of one client | [accounts](accounts.md#budgets) | 429 \`SIGNUP_THROTTLED\`, before the password is hashed |
| \`throttle.links\` | requests for links: of one address, one client, and one client for one address | [accounts](accounts.md#budgets) | 429 \`TOO_MANY_REQUESTS\` |
| \`throttle.mfa\` | wrong TOTP codes of one account, over all routes that take one; wrong recovery codes, counted apart | 5 of each in 900 s | 429 \`MFA_THROTTLED\`, before the code is looked at |
| twenty wrong codes | wrong codes of one account since the last right one; off with \`throttle.mfa\`. [More](second-factor.md#budget) | 20 | 429 \`MFA_THROTTLED\` for TOTP codes for 24 hours; recovery codes go on |
| of a [known device](accounts.md#a-known-device) | failed logins, wrong TOTP codes, wrong recovery codes, requests for links, and mails of one device; each is off where the limit that it precedes is off | 10 logins, 5 codes of each kind and 5 links in 900 s; 5 mails an hour | none: the device counts as every other client |
| passwords | wrong passwords of a signed-in person, wherever one is asked for: of one session, and of one account | 5 and 25 in 900 s | 429 \`TOO_MANY_REQUESTS\`, before the password is looked at |
| changes | changes of one account whose notice can [undo](undo.md) them | 10 in a day | 429 \`TOO_MANY_REQUESTS\` |
| \`throttle.mail\` | mails to one address | [mail](mail.md#how-many-mails-one-address-gets) | none: the answer is the same, and the mail is not sent |

- A **client** is \`req.ip\`: an IPv4 address, or an IPv6 /64. All clients of one IPv6 /48 together have ten times the limit of one.
- A **window** begins with the first attempt and is not extended. \`Retry-After\` and \`details.retry_after_seconds\` say when it ends.
- Every refusal is the event [\`throttled\`](events.md), with a digest of what was counted. A refused request takes no unit.
- Addresses are counted whether anybody has them or not, so a refusal does not tell who has an account.

## Routes

Below the prefix, with every feature switched on. Limits of passwords, changes and mails hold beside these, wherever a route asks for a password, makes a change that can
be undone, or mails something. Past the route limit \`logout\` nothing is refused: the cookies are still cleared, the session of the request still ends, and the answer is
still 204.

| Route | Limits |
|---|---|
`
