import type { Page } from 'playwright-core'
import { expect } from 'vitest'

interface Focus {
  readonly id: string
  readonly text: string
  /** False if a person does not see where the focus is. */
  readonly isSeen: boolean
}

/** What has the focus, as a person calls it. */
export const focused = (page: Page) =>
  page.evaluate(`(() => {
    const element = document.activeElement
    // A password field and its button have one ring.
    const { outlineStyle, outlineWidth } = getComputedStyle(element.matches('.secret input') ? element.closest('.secret') : element)
    return {
      id: element.id,
      text: element.labels?.[0]?.textContent ?? element.textContent.trim(),
      isSeen: outlineStyle === 'solid' && parseFloat(outlineWidth) >= 2,
    }
  })()`) as Promise<Focus>

/** Presses Tab until it is reached. What is passed shows that it has the focus. */
export async function reach(page: Page, name: string): Promise<void> {
  const passed: string[] = []
  for (let count = 0; count < 40; count += 1) {
    const { text, isSeen } = await focused(page)
    const isElement = await page.evaluate('document.activeElement !== document.body && document.activeElement.id !== "content"')
    if (isElement) expect([text, isSeen]).toEqual([text, true])
    if (text === name) return
    passed.push(text)
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not reach ${name}; it passed ${passed.join(', ')}`)
}

/** Types into the field of that label. */
export async function type(page: Page, name: string, text: string): Promise<void> {
  await reach(page, name)
  await page.keyboard.type(text)
}

export async function pressEnter(page: Page): Promise<void> {
  await Promise.all([page.waitForEvent('domcontentloaded'), page.keyboard.press('Enter')])
}
