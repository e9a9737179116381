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
  const links = /\/(request|reauthenticate\/email)$/.test(path) ? ['`throttle.links`'] : [] // every request for a link is called so
  const limits = [...new Set([...routeLimits, ...own, ...links])]
  return `| \`${method} ${path}\` | ${limits.length === 0 ? 'none' : limits.join(', ')} |`
}

const intro = `# Rate limits

This page says which limit applies to a route, what the limit counts, and what a refusal does. Set limits with
[\`throttle\`](configuration.md#throttle). Share the counts between processes with [counters](configuration.md#counters).

## Kinds

| Limit | Counts | By default | Refusal |
|---|---|---|---|
| route limit (\`throttle.routes\`) | requests of one client to one route; a \`/cookie\` route and the route without \`/cookie\` share one limit | 60 in 60 s | 429 \`TOO_MANY_REQUESTS\`, before any expensive work |
| \`throttle.login\` | failed logins; a successful login does not count. [More](accounts.md#rate-limits) | per 900 s: 5 of one client for one address, 50 for one address, 100 of one client | 429 \`LOGIN_THROTTLED\`, before the password is compared |
| \`throttle.signup\` | sign-ups of one client | [accounts](accounts.md#rate-limits) | 429 \`SIGNUP_THROTTLED\`, before the password is hashed |
| \`throttle.signupMails\` | mails that requests without a session send to addresses without a verified account | 200 in 3,600 s | every mail goes out, and the event \`signup.flood\`; with [\`captcha\`](bots.md#a-limit-on-sign-up-mails) 403 \`CAPTCHA_REQUIRED\` |
| \`throttle.links\` | requests for links: per address, per client, and per client and address | [accounts](accounts.md#rate-limits) | 429 \`TOO_MANY_REQUESTS\` |
| \`throttle.mfa\` | wrong TOTP codes of one account, over all routes that accept such codes. Counted separately: wrong recovery codes, and refused [passkeys](passkeys.md#what-is-checked) after one first step of a login | 5 of each in 900 s | 429 \`MFA_THROTTLED\`, before the code is compared |
| twenty wrong codes | wrong codes of one account since the last correct one; off with \`throttle.mfa\`. [More](second-factor.md#rate-limits) | 20 | 429 \`MFA_THROTTLED\` for TOTP codes for 24 hours; recovery codes still work |
| \`throttle.codes\` | wrong [mailed codes](sign-up.md#rules) of one address, with \`mailedCodes: 'both'\`; a known device has its own count | 20 in a day | 401, as a wrong code; mails to the address have the link alone |
| of a [known device](accounts.md#a-known-device) | failed logins, wrong TOTP codes, wrong recovery codes, requests for links, and mails of one device. Each of these limits comes before a general limit, and is off if the general limit is off | 10 logins, 5 codes of each kind and 5 links in 900 s; 5 mails an hour | none: the device then counts as an unknown client |
| passwords | wrong passwords of a signed-in person, on all routes that ask for the password: per session, and per account | 5 and 25 in 900 s | 429 \`TOO_MANY_REQUESTS\`, before the password is compared |
| changes | changes of one account that the owner can [undo](undo.md) | 10 in a day | 429 \`TOO_MANY_REQUESTS\` |
| exports | [exports](deletion.md#export) of one account by its person | 5 in 3,600 s | 429 \`TOO_MANY_REQUESTS\` |
| invitations | [invitations](invitations.md) that an administrator mails or mails again | 500 in a day | 429 \`TOO_MANY_REQUESTS\`; one that is not mailed is created |
| waiting accounts | mails to administrators about [accounts that wait](sign-up.md#who-waits) | one mail to each in an hour | none: the next mail counts all who wait |
| \`throttle.mail\` | mails to one address | [mail](mail.md#how-many-mails-one-address-gets) | none: the response is the same, and the mail is not sent |

- A **client** is \`req.ip\`: an IPv4 address, or an IPv6 /64. All clients of one IPv6 /48 together have ten times the limit of one
  client. An address with a port counts without the port, and an IPv4 address inside IPv6 (mapped, NAT64) counts as IPv4. A client whose address
  [cannot be read](troubleshooting.md#client-address) does not count, and the log says so.
- A **window** begins with the first attempt and is not extended. Those of \`throttle.signupMails\` begin at full multiples of their length.
  \`Retry-After\` and \`details.retry_after_seconds\` say when the window ends.
- Besides these limits, the [queue for password hashes](passwords.md#who-waits-for-a-hash) has 64 places, which networks share, and 64 for known
  devices. A request without a place gets 503.
- Every refusal is the event [\`throttled\`](events.md), with a digest of what was counted. A refused request does not count.
- An address counts whether it has an account or not, so a refusal does not reveal who has an account.

## Routes

The table lists all routes below the prefix, with every feature switched on. The limits of passwords, changes and mails apply in addition, if a route
asks for a password, makes a change that can be undone, or sends a mail. The route limit \`logout\` refuses nothing. Past this limit, a logout still
clears the cookies, revokes the session of the request, and responds 204.

| Route | Limits |
|---|---|
`
