import { expect } from 'vitest'

const pages = {
  activate: 'accounts/auth/activate',
}

export interface MailedLink {
  url: string
  token: string
}

/** By the demo's address: tests run side by side. */
const returned = new Map<string, Set<string>>()

/**
 * Returns the newest link of its kind in the demo's outbox, and waits for it: mails leave up to two seconds after the answer. Returns
 * no link twice, so after a second request it waits for the second link.
 */
export async function newestLink(demo: { url: string }, kind: keyof typeof pages): Promise<MailedLink> {
  const known = returned.get(demo.url) ?? new Set()
  returned.set(demo.url, known)
  const findNew = async () => {
    const [newest] = await linksIn(demo, kind)
    return newest && !known.has(newest.url) ? newest : null
  }
  await expect.poll(findNew, { timeout: 5_000 }).not.toBeNull()
  const link = await findNew()
  if (!link) throw new Error(`The link (${kind}) is no longer the newest.`)
  known.add(link.url)
  return link
}

async function linksIn(demo: { url: string }, kind: keyof typeof pages): Promise<MailedLink[]> {
  const outbox = await (await fetch(`${demo.url}/outbox`)).text()
  const links = outbox.matchAll(new RegExp(`href="(${demo.url}/${pages[kind]}/([\\w-]{43}))"`, 'g'))
  return [...links].map(([, url = '', token = '']) => ({ url, token }))
}
