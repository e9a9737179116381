import type { Page } from 'playwright-core'

export interface Device {
  readonly authenticatorId: string
  /** Whether the person touches the device when it asks. */
  present(enabled: boolean): Promise<unknown>
  unplug(): Promise<unknown>
}

/**
 * Gives a page the authenticator of its device, with passkeys, whose owner touches it. Each page of Chromium has its own.
 * @param isUserVerified false: the device cannot tell that its owner is there
 */
export async function plugIn(page: Page, { isUserVerified = true, isPresent = true } = {}): Promise<Device> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable', { enableUI: false })
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified,
      automaticPresenceSimulation: isPresent,
    },
  })
  return {
    authenticatorId,
    present: (enabled) => devtools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled }),
    unplug: () => devtools.send('WebAuthn.disable'),
  }
}
