/* Written by `make generate` from the functions that go-nvml calls. Do not edit. */
	.text
	.globl nvmlComputeInstanceDestroy
	.hidden nvmlComputeInstanceDestroy
	.type nvmlComputeInstanceDestroy, %function
nvmlComputeInstanceDestroy:
	adrp x16, velocpy_nvml_table+0
	ldr x16, [x16, :lo12:velocpy_nvml_table+0]
	br x16
	.size nvmlComputeInstanceDestroy, .-nvmlComputeInstanceDestroy
	.globl nvmlComputeInstanceGetInfo
	.hidden nvmlComputeInstanceGetInfo
	.type nvmlComputeInstanceGetInfo, %function
nvmlComputeInstanceGetInfo:
	adrp x16, velocpy_nvml_table+8
	ldr x16, [x16, :lo12:velocpy_nvml_table+8]
	br x16
	.size nvmlComputeInstanceGetInfo, .-nvmlComputeInstanceGetInfo
	.globl nvmlComputeInstanceGetInfo_v2
	.hidden nvmlComputeInstanceGetInfo_v2
	.type nvmlComputeInstanceGetInfo_v2, %function
nvmlComputeInstanceGetInfo_v2:
	adrp x16, velocpy_nvml_table+16
	ldr x16, [x16, :lo12:velocpy_nvml_table+16]
	br x16
	.size nvmlComputeInstanceGetInfo_v2, .-nvmlComputeInstanceGetInfo_v2
	.globl nvmlDeviceClearAccountingPids
	.hidden nvmlDeviceClearAccountingPids
	.type nvmlDeviceClearAccountingPids, %function
nvmlDeviceClearAccountingPids:
	adrp x16, velocpy_nvml_table+24
	ldr x16, [x16, :lo12:velocpy_nvml_table+24]
	br x16
	.size nvmlDeviceClearAccountingPids, .-nvmlDeviceClearAccountingPids
	.globl nvmlDeviceClearCpuAffinity
	.hidden nvmlDeviceClearCpuAffinity
	.type nvmlDeviceClearCpuAffinity, %function
nvmlDeviceClearCpuAffinity:
	adrp x16, velocpy_nvml_table+32
	ldr x16, [x16, :lo12:velocpy_nvml_table+32]
	br x16
	.size nvmlDeviceClearCpuAffinity, .-nvmlDeviceClearCpuAffinity
	.globl nvmlDeviceClearEccErrorCounts
	.hidden nvmlDeviceClearEccErrorCounts
	.type nvmlDeviceClearEccErrorCounts, %function
nvmlDeviceClearEccErrorCounts:
	adrp x16, velocpy_nvml_table+40
	ldr x16, [x16, :lo12:velocpy_nvml_table+40]
	br x16
	.size nvmlDeviceClearEccErrorCounts, .-nvmlDeviceClearEccErrorCounts
	.globl nvmlDeviceClearFieldValues
	.hidden nvmlDeviceClearFieldValues
	.type nvmlDeviceClearFieldValues, %function
nvmlDeviceClearFieldValues:
	adrp x16, velocpy_nvml_table+48
	ldr x16, [x16, :lo12:velocpy_nvml_table+48]
	br x16
	.size nvmlDeviceClearFieldValues, .-nvmlDeviceClearFieldValues
	.globl nvmlDeviceCreateGpuInstance
	.hidden nvmlDeviceCreateGpuInstance
	.type nvmlDeviceCreateGpuInstance, %function
nvmlDeviceCreateGpuInstance:
	adrp x16, velocpy_nvml_table+56
	ldr x16, [x16, :lo12:velocpy_nvml_table+56]
	br x16
	.size nvmlDeviceCreateGpuInstance, .-nvmlDeviceCreateGpuInstance
	.globl nvmlDeviceCreateGpuInstanceWithPlacement
	.hidden nvmlDeviceCreateGpuInstanceWithPlacement
	.type nvmlDeviceCreateGpuInstanceWithPlacement, %function
nvmlDeviceCreateGpuInstanceWithPlacement:
	adrp x16, velocpy_nvml_table+64
	ldr x16, [x16, :lo12:velocpy_nvml_table+64]
	br x16
	.size nvmlDeviceCreateGpuInstanceWithPlacement, .-nvmlDeviceCreateGpuInstanceWithPlacement
	.globl nvmlDeviceDiscoverGpus
	.hidden nvmlDeviceDiscoverGpus
	.type nvmlDeviceDiscoverGpus, %function
nvmlDeviceDiscoverGpus:
	adrp x16, velocpy_nvml_table+72
	ldr x16, [x16, :lo12:velocpy_nvml_table+72]
	br x16
	.size nvmlDeviceDiscoverGpus, .-nvmlDeviceDiscoverGpus
	.globl nvmlDeviceFreezeNvLinkUtilizationCounter
	.hidden nvmlDeviceFreezeNvLinkUtilizationCounter
	.type nvmlDeviceFreezeNvLinkUtilizationCounter, %function
nvmlDeviceFreezeNvLinkUtilizationCounter:
	adrp x16, velocpy_nvml_table+80
	ldr x16, [x16, :lo12:velocpy_nvml_table+80]
	br x16
	.size nvmlDeviceFreezeNvLinkUtilizationCounter, .-nvmlDeviceFreezeNvLinkUtilizationCounter
	.globl nvmlDeviceGetAPIRestriction
	.hidden nvmlDeviceGetAPIRestriction
	.type nvmlDeviceGetAPIRestriction, %function
nvmlDeviceGetAPIRestriction:
	adrp x16, velocpy_nvml_table+88
	ldr x16, [x16, :lo12:velocpy_nvml_table+88]
	br x16
	.size nvmlDeviceGetAPIRestriction, .-nvmlDeviceGetAPIRestriction
	.globl nvmlDeviceGetAccountingBufferSize
	.hidden nvmlDeviceGetAccountingBufferSize
	.type nvmlDeviceGetAccountingBufferSize, %function
nvmlDeviceGetAccountingBufferSize:
	adrp x16, velocpy_nvml_table+96
	ldr x16, [x16, :lo12:velocpy_nvml_table+96]
	br x16
	.size nvmlDeviceGetAccountingBufferSize, .-nvmlDeviceGetAccountingBufferSize
	.globl nvmlDeviceGetAccountingMode
	.hidden nvmlDeviceGetAccountingMode
	.type nvmlDeviceGetAccountingMode, %function
nvmlDeviceGetAccountingMode:
	adrp x16, velocpy_nvml_table+104
	ldr x16, [x16, :lo12:velocpy_nvml_table+104]
	br x16
	.size nvmlDeviceGetAccountingMode, .-nvmlDeviceGetAccountingMode
	.globl nvmlDeviceGetAccountingPids
	.hidden nvmlDeviceGetAccountingPids
	.type nvmlDeviceGetAccountingPids, %function
nvmlDeviceGetAccountingPids:
	adrp x16, velocpy_nvml_table+112
	ldr x16, [x16, :lo12:velocpy_nvml_table+112]
	br x16
	.size nvmlDeviceGetAccountingPids, .-nvmlDeviceGetAccountingPids
	.globl nvmlDeviceGetAccountingStats
	.hidden nvmlDeviceGetAccountingStats
	.type nvmlDeviceGetAccountingStats, %function
nvmlDeviceGetAccountingStats:
	adrp x16, velocpy_nvml_table+120
	ldr x16, [x16, :lo12:velocpy_nvml_table+120]
	br x16
	.size nvmlDeviceGetAccountingStats, .-nvmlDeviceGetAccountingStats
	.globl nvmlDeviceGetActiveVgpus
	.hidden nvmlDeviceGetActiveVgpus
	.type nvmlDeviceGetActiveVgpus, %function
nvmlDeviceGetActiveVgpus:
	adrp x16, velocpy_nvml_table+128
	ldr x16, [x16, :lo12:velocpy_nvml_table+128]
	br x16
	.size nvmlDeviceGetActiveVgpus, .-nvmlDeviceGetActiveVgpus
	.globl nvmlDeviceGetAdaptiveClockInfoStatus
	.hidden nvmlDeviceGetAdaptiveClockInfoStatus
	.type nvmlDeviceGetAdaptiveClockInfoStatus, %function
nvmlDeviceGetAdaptiveClockInfoStatus:
	adrp x16, velocpy_nvml_table+136
	ldr x16, [x16, :lo12:velocpy_nvml_table+136]
	br x16
	.size nvmlDeviceGetAdaptiveClockInfoStatus, .-nvmlDeviceGetAdaptiveClockInfoStatus
	.globl nvmlDeviceGetAddressingMode
	.hidden nvmlDeviceGetAddressingMode
	.type nvmlDeviceGetAddressingMode, %function
nvmlDeviceGetAddressingMode:
	adrp x16, velocpy_nvml_table+144
	ldr x16, [x16, :lo12:velocpy_nvml_table+144]
	br x16
	.size nvmlDeviceGetAddressingMode, .-nvmlDeviceGetAddressingMode
	.globl nvmlDeviceGetApplicationsClock
	.hidden nvmlDeviceGetApplicationsClock
	.type nvmlDeviceGetApplicationsClock, %function
nvmlDeviceGetApplicationsClock:
	adrp x16, velocpy_nvml_table+152
	ldr x16, [x16, :lo12:velocpy_nvml_table+152]
	br x16
	.size nvmlDeviceGetApplicationsClock, .-nvmlDeviceGetApplicationsClock
	.globl nvmlDeviceGetArchitecture
	.hidden nvmlDeviceGetArchitecture
	.type nvmlDeviceGetArchitecture, %function
nvmlDeviceGetArchitecture:
	adrp x16, velocpy_nvml_table+160
	ldr x16, [x16, :lo12:velocpy_nvml_table+160]
	br x16
	.size nvmlDeviceGetArchitecture, .-nvmlDeviceGetArchitecture
	.globl nvmlDeviceGetAttributes
	.hidden nvmlDeviceGetAttributes
	.type nvmlDeviceGetAttributes, %function
nvmlDeviceGetAttributes:
	adrp x16, velocpy_nvml_table+168
	ldr x16, [x16, :lo12:velocpy_nvml_table+168]
	br x16
	.size nvmlDeviceGetAttributes, .-nvmlDeviceGetAttributes
	.globl nvmlDeviceGetAttributes_v2
	.hidden nvmlDeviceGetAttributes_v2
	.type nvmlDeviceGetAttributes_v2, %function
nvmlDeviceGetAttributes_v2:
	adrp x16, velocpy_nvml_table+176
	ldr x16, [x16, :lo12:velocpy_nvml_table+176]
	br x16
	.size nvmlDeviceGetAttributes_v2, .-nvmlDeviceGetAttributes_v2
	.globl nvmlDeviceGetAutoBoostedClocksEnabled
	.hidden nvmlDeviceGetAutoBoostedClocksEnabled
	.type nvmlDeviceGetAutoBoostedClocksEnabled, %function
nvmlDeviceGetAutoBoostedClocksEnabled:
	adrp x16, velocpy_nvml_table+184
	ldr x16, [x16, :lo12:velocpy_nvml_table+184]
	br x16
	.size nvmlDeviceGetAutoBoostedClocksEnabled, .-nvmlDeviceGetAutoBoostedClocksEnabled
	.globl nvmlDeviceGetBAR1MemoryInfo
	.hidden nvmlDeviceGetBAR1MemoryInfo
	.type nvmlDeviceGetBAR1MemoryInfo, %function
nvmlDeviceGetBAR1MemoryInfo:
	adrp x16, velocpy_nvml_table+192
	ldr x16, [x16, :lo12:velocpy_nvml_table+192]
	br x16
	.size nvmlDeviceGetBAR1MemoryInfo, .-nvmlDeviceGetBAR1MemoryInfo
	.globl nvmlDeviceGetBoardId
	.hidden nvmlDeviceGetBoardId
	.type nvmlDeviceGetBoardId, %function
nvmlDeviceGetBoardId:
	adrp x16, velocpy_nvml_table+200
	ldr x16, [x16, :lo12:velocpy_nvml_table+200]
	br x16
	.size nvmlDeviceGetBoardId, .-nvmlDeviceGetBoardId
	.globl nvmlDeviceGetBoardPartNumber
	.hidden nvmlDeviceGetBoardPartNumber
	.type nvmlDeviceGetBoardPartNumber, %function
nvmlDeviceGetBoardPartNumber:
	adrp x16, velocpy_nvml_table+208
	ldr x16, [x16, :lo12:velocpy_nvml_table+208]
	br x16
	.size nvmlDeviceGetBoardPartNumber, .-nvmlDeviceGetBoardPartNumber
	.globl nvmlDeviceGetBrand
	.hidden nvmlDeviceGetBrand
	.type nvmlDeviceGetBrand, %function
nvmlDeviceGetBrand:
	adrp x16, velocpy_nvml_table+216
	ldr x16, [x16, :lo12:velocpy_nvml_table+216]
	br x16
	.size nvmlDeviceGetBrand, .-nvmlDeviceGetBrand
	.globl nvmlDeviceGetBridgeChipInfo
	.hidden nvmlDeviceGetBridgeChipInfo
	.type nvmlDeviceGetBridgeChipInfo, %function
nvmlDeviceGetBridgeChipInfo:
	adrp x16, velocpy_nvml_table+224
	ldr x16, [x16, :lo12:velocpy_nvml_table+224]
	br x16
	.size nvmlDeviceGetBridgeChipInfo, .-nvmlDeviceGetBridgeChipInfo
	.globl nvmlDeviceGetBusType
	.hidden nvmlDeviceGetBusType
	.type nvmlDeviceGetBusType, %function
nvmlDeviceGetBusType:
	adrp x16, velocpy_nvml_table+232
	ldr x16, [x16, :lo12:velocpy_nvml_table+232]
	br x16
	.size nvmlDeviceGetBusType, .-nvmlDeviceGetBusType
	.globl nvmlDeviceGetC2cModeInfoV
	.hidden nvmlDeviceGetC2cModeInfoV
	.type nvmlDeviceGetC2cModeInfoV, %function
nvmlDeviceGetC2cModeInfoV:
	adrp x16, velocpy_nvml_table+240
	ldr x16, [x16, :lo12:velocpy_nvml_table+240]
	br x16
	.size nvmlDeviceGetC2cModeInfoV, .-nvmlDeviceGetC2cModeInfoV
	.globl nvmlDeviceGetCapabilities
	.hidden nvmlDeviceGetCapabilities
	.type nvmlDeviceGetCapabilities, %function
nvmlDeviceGetCapabilities:
	adrp x16, velocpy_nvml_table+248
	ldr x16, [x16, :lo12:velocpy_nvml_table+248]
	br x16
	.size nvmlDeviceGetCapabilities, .-nvmlDeviceGetCapabilities
	.globl nvmlDeviceGetClkMonStatus
	.hidden nvmlDeviceGetClkMonStatus
	.type nvmlDeviceGetClkMonStatus, %function
nvmlDeviceGetClkMonStatus:
	adrp x16, velocpy_nvml_table+256
	ldr x16, [x16, :lo12:velocpy_nvml_table+256]
	br x16
	.size nvmlDeviceGetClkMonStatus, .-nvmlDeviceGetClkMonStatus
	.globl nvmlDeviceGetClock
	.hidden nvmlDeviceGetClock
	.type nvmlDeviceGetClock, %function
nvmlDeviceGetClock:
	adrp x16, velocpy_nvml_table+264
	ldr x16, [x16, :lo12:velocpy_nvml_table+264]
	br x16
	.size nvmlDeviceGetClock, .-nvmlDeviceGetClock
	.globl nvmlDeviceGetClockInfo
	.hidden nvmlDeviceGetClockInfo
	.type nvmlDeviceGetClockInfo, %function
nvmlDeviceGetClockInfo:
	adrp x16, velocpy_nvml_table+272
	ldr x16, [x16, :lo12:velocpy_nvml_table+272]
	br x16
	.size nvmlDeviceGetClockInfo, .-nvmlDeviceGetClockInfo
	.globl nvmlDeviceGetClockOffsets
	.hidden nvmlDeviceGetClockOffsets
	.type nvmlDeviceGetClockOffsets, %function
nvmlDeviceGetClockOffsets:
	adrp x16, velocpy_nvml_table+280
	ldr x16, [x16, :lo12:velocpy_nvml_table+280]
	br x16
	.size nvmlDeviceGetClockOffsets, .-nvmlDeviceGetClockOffsets
	.globl nvmlDeviceGetComputeInstanceId
	.hidden nvmlDeviceGetComputeInstanceId
	.type nvmlDeviceGetComputeInstanceId, %function
nvmlDeviceGetComputeInstanceId:
	adrp x16, velocpy_nvml_table+288
	ldr x16, [x16, :lo12:velocpy_nvml_table+288]
	br x16
	.size nvmlDeviceGetComputeInstanceId, .-nvmlDeviceGetComputeInstanceId
	.globl nvmlDeviceGetComputeMode
	.hidden nvmlDeviceGetComputeMode
	.type nvmlDeviceGetComputeMode, %function
nvmlDeviceGetComputeMode:
	adrp x16, velocpy_nvml_table+296
	ldr x16, [x16, :lo12:velocpy_nvml_table+296]
	br x16
	.size nvmlDeviceGetComputeMode, .-nvmlDeviceGetComputeMode
	.globl nvmlDeviceGetComputeRunningProcesses
	.hidden nvmlDeviceGetComputeRunningProcesses
	.type nvmlDeviceGetComputeRunningProcesses, %function
nvmlDeviceGetComputeRunningProcesses:
	adrp x16, velocpy_nvml_table+304
	ldr x16, [x16, :lo12:velocpy_nvml_table+304]
	br x16
	.size nvmlDeviceGetComputeRunningProcesses, .-nvmlDeviceGetComputeRunningProcesses
	.globl nvmlDeviceGetComputeRunningProcesses_v2
	.hidden nvmlDeviceGetComputeRunningProcesses_v2
	.type nvmlDeviceGetComputeRunningProcesses_v2, %function
nvmlDeviceGetComputeRunningProcesses_v2:
	adrp x16, velocpy_nvml_table+312
	ldr x16, [x16, :lo12:velocpy_nvml_table+312]
	br x16
	.size nvmlDeviceGetComputeRunningProcesses_v2, .-nvmlDeviceGetComputeRunningProcesses_v2
	.globl nvmlDeviceGetComputeRunningProcesses_v3
	.hidden nvmlDeviceGetComputeRunningProcesses_v3
	.type nvmlDeviceGetComputeRunningProcesses_v3, %function
nvmlDeviceGetComputeRunningProcesses_v3:
	adrp x16, velocpy_nvml_table+320
	ldr x16, [x16, :lo12:velocpy_nvml_table+320]
	br x16
	.size nvmlDeviceGetComputeRunningProcesses_v3, .-nvmlDeviceGetComputeRunningProcesses_v3
	.globl nvmlDeviceGetConfComputeGpuAttestationReport
	.hidden nvmlDeviceGetConfComputeGpuAttestationReport
	.type nvmlDeviceGetConfComputeGpuAttestationReport, %function
nvmlDeviceGetConfComputeGpuAttestationReport:
	adrp x16, velocpy_nvml_table+328
	ldr x16, [x16, :lo12:velocpy_nvml_table+328]
	br x16
	.size nvmlDeviceGetConfComputeGpuAttestationReport, .-nvmlDeviceGetConfComputeGpuAttestationReport
	.globl nvmlDeviceGetConfComputeGpuCertificate
	.hidden nvmlDeviceGetConfComputeGpuCertificate
	.type nvmlDeviceGetConfComputeGpuCertificate, %function
nvmlDeviceGetConfComputeGpuCertificate:
	adrp x16, velocpy_nvml_table+336
	ldr x16, [x16, :lo12:velocpy_nvml_table+336]
	br x16
	.size nvmlDeviceGetConfComputeGpuCertificate, .-nvmlDeviceGetConfComputeGpuCertificate
	.globl nvmlDeviceGetConfComputeMemSizeInfo
	.hidden nvmlDeviceGetConfComputeMemSizeInfo
	.type nvmlDeviceGetConfComputeMemSizeInfo, %function
nvmlDeviceGetConfComputeMemSizeInfo:
	adrp x16, velocpy_nvml_table+344
	ldr x16, [x16, :lo12:velocpy_nvml_table+344]
	br x16
	.size nvmlDeviceGetConfComputeMemSizeInfo, .-nvmlDeviceGetConfComputeMemSizeInfo
	.globl nvmlDeviceGetConfComputeProtectedMemoryUsage
	.hidden nvmlDeviceGetConfComputeProtectedMemoryUsage
	.type nvmlDeviceGetConfComputeProtectedMemoryUsage, %function
nvmlDeviceGetConfComputeProtectedMemoryUsage:
	adrp x16, velocpy_nvml_table+352
	ldr x16, [x16, :lo12:velocpy_nvml_table+352]
	br x16
	.size nvmlDeviceGetConfComputeProtectedMemoryUsage, .-nvmlDeviceGetConfComputeProtectedMemoryUsage
	.globl nvmlDeviceGetCoolerInfo
	.hidden nvmlDeviceGetCoolerInfo
	.type nvmlDeviceGetCoolerInfo, %function
nvmlDeviceGetCoolerInfo:
	adrp x16, velocpy_nvml_table+360
	ldr x16, [x16, :lo12:velocpy_nvml_table+360]
	br x16
	.size nvmlDeviceGetCoolerInfo, .-nvmlDeviceGetCoolerInfo
	.globl nvmlDeviceGetCount
	.hidden nvmlDeviceGetCount
	.type nvmlDeviceGetCount, %function
nvmlDeviceGetCount:
	adrp x16, velocpy_nvml_table+368
	ldr x16, [x16, :lo12:velocpy_nvml_table+368]
	br x16
	.size nvmlDeviceGetCount, .-nvmlDeviceGetCount
	.globl nvmlDeviceGetCount_v2
	.hidden nvmlDeviceGetCount_v2
	.type nvmlDeviceGetCount_v2, %function
nvmlDeviceGetCount_v2:
	adrp x16, velocpy_nvml_table+376
	ldr x16, [x16, :lo12:velocpy_nvml_table+376]
	br x16
	.size nvmlDeviceGetCount_v2, .-nvmlDeviceGetCount_v2
	.globl nvmlDeviceGetCpuAffinity
	.hidden nvmlDeviceGetCpuAffinity
	.type nvmlDeviceGetCpuAffinity, %function
nvmlDeviceGetCpuAffinity:
	adrp x16, velocpy_nvml_table+384
	ldr x16, [x16, :lo12:velocpy_nvml_table+384]
	br x16
	.size nvmlDeviceGetCpuAffinity, .-nvmlDeviceGetCpuAffinity
	.globl nvmlDeviceGetCpuAffinityWithinScope
	.hidden nvmlDeviceGetCpuAffinityWithinScope
	.type nvmlDeviceGetCpuAffinityWithinScope, %function
nvmlDeviceGetCpuAffinityWithinScope:
	adrp x16, velocpy_nvml_table+392
	ldr x16, [x16, :lo12:velocpy_nvml_table+392]
	br x16
	.size nvmlDeviceGetCpuAffinityWithinScope, .-nvmlDeviceGetCpuAffinityWithinScope
	.globl nvmlDeviceGetCreatableVgpus
	.hidden nvmlDeviceGetCreatableVgpus
	.type nvmlDeviceGetCreatableVgpus, %function
nvmlDeviceGetCreatableVgpus:
	adrp x16, velocpy_nvml_table+400
	ldr x16, [x16, :lo12:velocpy_nvml_table+400]
	br x16
	.size nvmlDeviceGetCreatableVgpus, .-nvmlDeviceGetCreatableVgpus
	.globl nvmlDeviceGetCudaComputeCapability
	.hidden nvmlDeviceGetCudaComputeCapability
	.type nvmlDeviceGetCudaComputeCapability, %function
nvmlDeviceGetCudaComputeCapability:
	adrp x16, velocpy_nvml_table+408
	ldr x16, [x16, :lo12:velocpy_nvml_table+408]
	br x16
	.size nvmlDeviceGetCudaComputeCapability, .-nvmlDeviceGetCudaComputeCapability
	.globl nvmlDeviceGetCurrPcieLinkGeneration
	.hidden nvmlDeviceGetCurrPcieLinkGeneration
	.type nvmlDeviceGetCurrPcieLinkGeneration, %function
nvmlDeviceGetCurrPcieLinkGeneration:
	adrp x16, velocpy_nvml_table+416
	ldr x16, [x16, :lo12:velocpy_nvml_table+416]
	br x16
	.size nvmlDeviceGetCurrPcieLinkGeneration, .-nvmlDeviceGetCurrPcieLinkGeneration
	.globl nvmlDeviceGetCurrPcieLinkWidth
	.hidden nvmlDeviceGetCurrPcieLinkWidth
	.type nvmlDeviceGetCurrPcieLinkWidth, %function
nvmlDeviceGetCurrPcieLinkWidth:
	adrp x16, velocpy_nvml_table+424
	ldr x16, [x16, :lo12:velocpy_nvml_table+424]
	br x16
	.size nvmlDeviceGetCurrPcieLinkWidth, .-nvmlDeviceGetCurrPcieLinkWidth
	.globl nvmlDeviceGetCurrentClockFreqs
	.hidden nvmlDeviceGetCurrentClockFreqs
	.type nvmlDeviceGetCurrentClockFreqs, %function
nvmlDeviceGetCurrentClockFreqs:
	adrp x16, velocpy_nvml_table+432
	ldr x16, [x16, :lo12:velocpy_nvml_table+432]
	br x16
	.size nvmlDeviceGetCurrentClockFreqs, .-nvmlDeviceGetCurrentClockFreqs
	.globl nvmlDeviceGetCurrentClocksEventReasons
	.hidden nvmlDeviceGetCurrentClocksEventReasons
	.type nvmlDeviceGetCurrentClocksEventReasons, %function
nvmlDeviceGetCurrentClocksEventReasons:
	adrp x16, velocpy_nvml_table+440
	ldr x16, [x16, :lo12:velocpy_nvml_table+440]
	br x16
	.size nvmlDeviceGetCurrentClocksEventReasons, .-nvmlDeviceGetCurrentClocksEventReasons
	.globl nvmlDeviceGetCurrentClocksThrottleReasons
	.hidden nvmlDeviceGetCurrentClocksThrottleReasons
	.type nvmlDeviceGetCurrentClocksThrottleReasons, %function
nvmlDeviceGetCurrentClocksThrottleReasons:
	adrp x16, velocpy_nvml_table+448
	ldr x16, [x16, :lo12:velocpy_nvml_table+448]
	br x16
	.size nvmlDeviceGetCurrentClocksThrottleReasons, .-nvmlDeviceGetCurrentClocksThrottleReasons
	.globl nvmlDeviceGetDecoderUtilization
	.hidden nvmlDeviceGetDecoderUtilization
	.type nvmlDeviceGetDecoderUtilization, %function
nvmlDeviceGetDecoderUtilization:
	adrp x16, velocpy_nvml_table+456
	ldr x16, [x16, :lo12:velocpy_nvml_table+456]
	br x16
	.size nvmlDeviceGetDecoderUtilization, .-nvmlDeviceGetDecoderUtilization
	.globl nvmlDeviceGetDefaultApplicationsClock
	.hidden nvmlDeviceGetDefaultApplicationsClock
	.type nvmlDeviceGetDefaultApplicationsClock, %function
nvmlDeviceGetDefaultApplicationsClock:
	adrp x16, velocpy_nvml_table+464
	ldr x16, [x16, :lo12:velocpy_nvml_table+464]
	br x16
	.size nvmlDeviceGetDefaultApplicationsClock, .-nvmlDeviceGetDefaultApplicationsClock
	.globl nvmlDeviceGetDefaultEccMode
	.hidden nvmlDeviceGetDefaultEccMode
	.type nvmlDeviceGetDefaultEccMode, %function
nvmlDeviceGetDefaultEccMode:
	adrp x16, velocpy_nvml_table+472
	ldr x16, [x16, :lo12:velocpy_nvml_table+472]
	br x16
	.size nvmlDeviceGetDefaultEccMode, .-nvmlDeviceGetDefaultEccMode
	.globl nvmlDeviceGetDetailedEccErrors
	.hidden nvmlDeviceGetDetailedEccErrors
	.type nvmlDeviceGetDetailedEccErrors, %function
nvmlDeviceGetDetailedEccErrors:
	adrp x16, velocpy_nvml_table+480
	ldr x16, [x16, :lo12:velocpy_nvml_table+480]
	br x16
	.size nvmlDeviceGetDetailedEccErrors, .-nvmlDeviceGetDetailedEccErrors
	.globl nvmlDeviceGetDeviceHandleFromMigDeviceHandle
	.hidden nvmlDeviceGetDeviceHandleFromMigDeviceHandle
	.type nvmlDeviceGetDeviceHandleFromMigDeviceHandle, %function
nvmlDeviceGetDeviceHandleFromMigDeviceHandle:
	adrp x16, velocpy_nvml_table+488
	ldr x16, [x16, :lo12:velocpy_nvml_table+488]
	br x16
	.size nvmlDeviceGetDeviceHandleFromMigDeviceHandle, .-nvmlDeviceGetDeviceHandleFromMigDeviceHandle
	.globl nvmlDeviceGetDisplayActive
	.hidden nvmlDeviceGetDisplayActive
	.type nvmlDeviceGetDisplayActive, %function
nvmlDeviceGetDisplayActive:
	adrp x16, velocpy_nvml_table+496
	ldr x16, [x16, :lo12:velocpy_nvml_table+496]
	br x16
	.size nvmlDeviceGetDisplayActive, .-nvmlDeviceGetDisplayActive
	.globl nvmlDeviceGetDisplayMode
	.hidden nvmlDeviceGetDisplayMode
	.type nvmlDeviceGetDisplayMode, %function
nvmlDeviceGetDisplayMode:
	adrp x16, velocpy_nvml_table+504
	ldr x16, [x16, :lo12:velocpy_nvml_table+504]
	br x16
	.size nvmlDeviceGetDisplayMode, .-nvmlDeviceGetDisplayMode
	.globl nvmlDeviceGetDramEncryptionMode
	.hidden nvmlDeviceGetDramEncryptionMode
	.type nvmlDeviceGetDramEncryptionMode, %function
nvmlDeviceGetDramEncryptionMode:
	adrp x16, velocpy_nvml_table+512
	ldr x16, [x16, :lo12:velocpy_nvml_table+512]
	br x16
	.size nvmlDeviceGetDramEncryptionMode, .-nvmlDeviceGetDramEncryptionMode
	.globl nvmlDeviceGetDriverModel
	.hidden nvmlDeviceGetDriverModel
	.type nvmlDeviceGetDriverModel, %function
nvmlDeviceGetDriverModel:
	adrp x16, velocpy_nvml_table+520
	ldr x16, [x16, :lo12:velocpy_nvml_table+520]
	br x16
	.size nvmlDeviceGetDriverModel, .-nvmlDeviceGetDriverModel
	.globl nvmlDeviceGetDriverModel_v2
	.hidden nvmlDeviceGetDriverModel_v2
	.type nvmlDeviceGetDriverModel_v2, %function
nvmlDeviceGetDriverModel_v2:
	adrp x16, velocpy_nvml_table+528
	ldr x16, [x16, :lo12:velocpy_nvml_table+528]
	br x16
	.size nvmlDeviceGetDriverModel_v2, .-nvmlDeviceGetDriverModel_v2
	.globl nvmlDeviceGetDynamicPstatesInfo
	.hidden nvmlDeviceGetDynamicPstatesInfo
	.type nvmlDeviceGetDynamicPstatesInfo, %function
nvmlDeviceGetDynamicPstatesInfo:
	adrp x16, velocpy_nvml_table+536
	ldr x16, [x16, :lo12:velocpy_nvml_table+536]
	br x16
	.size nvmlDeviceGetDynamicPstatesInfo, .-nvmlDeviceGetDynamicPstatesInfo
	.globl nvmlDeviceGetEccMode
	.hidden nvmlDeviceGetEccMode
	.type nvmlDeviceGetEccMode, %function
nvmlDeviceGetEccMode:
	adrp x16, velocpy_nvml_table+544
	ldr x16, [x16, :lo12:velocpy_nvml_table+544]
	br x16
	.size nvmlDeviceGetEccMode, .-nvmlDeviceGetEccMode
	.globl nvmlDeviceGetEncoderCapacity
	.hidden nvmlDeviceGetEncoderCapacity
	.type nvmlDeviceGetEncoderCapacity, %function
nvmlDeviceGetEncoderCapacity:
	adrp x16, velocpy_nvml_table+552
	ldr x16, [x16, :lo12:velocpy_nvml_table+552]
	br x16
	.size nvmlDeviceGetEncoderCapacity, .-nvmlDeviceGetEncoderCapacity
	.globl nvmlDeviceGetEncoderSessions
	.hidden nvmlDeviceGetEncoderSessions
	.type nvmlDeviceGetEncoderSessions, %function
nvmlDeviceGetEncoderSessions:
	adrp x16, velocpy_nvml_table+560
	ldr x16, [x16, :lo12:velocpy_nvml_table+560]
	br x16
	.size nvmlDeviceGetEncoderSessions, .-nvmlDeviceGetEncoderSessions
	.globl nvmlDeviceGetEncoderStats
	.hidden nvmlDeviceGetEncoderStats
	.type nvmlDeviceGetEncoderStats, %function
nvmlDeviceGetEncoderStats:
	adrp x16, velocpy_nvml_table+568
	ldr x16, [x16, :lo12:velocpy_nvml_table+568]
	br x16
	.size nvmlDeviceGetEncoderStats, .-nvmlDeviceGetEncoderStats
	.globl nvmlDeviceGetEncoderUtilization
	.hidden nvmlDeviceGetEncoderUtilization
	.type nvmlDeviceGetEncoderUtilization, %function
nvmlDeviceGetEncoderUtilization:
	adrp x16, velocpy_nvml_table+576
	ldr x16, [x16, :lo12:velocpy_nvml_table+576]
	br x16
	.size nvmlDeviceGetEncoderUtilization, .-nvmlDeviceGetEncoderUtilization
	.globl nvmlDeviceGetEnforcedPowerLimit
	.hidden nvmlDeviceGetEnforcedPowerLimit
	.type nvmlDeviceGetEnforcedPowerLimit, %function
nvmlDeviceGetEnforcedPowerLimit:
	adrp x16, velocpy_nvml_table+584
	ldr x16, [x16, :lo12:velocpy_nvml_table+584]
	br x16
	.size nvmlDeviceGetEnforcedPowerLimit, .-nvmlDeviceGetEnforcedPowerLimit
	.globl nvmlDeviceGetFBCSessions
	.hidden nvmlDeviceGetFBCSessions
	.type nvmlDeviceGetFBCSessions, %function
nvmlDeviceGetFBCSessions:
	adrp x16, velocpy_nvml_table+592
	ldr x16, [x16, :lo12:velocpy_nvml_table+592]
	br x16
	.size nvmlDeviceGetFBCSessions, .-nvmlDeviceGetFBCSessions
	.globl nvmlDeviceGetFBCStats
	.hidden nvmlDeviceGetFBCStats
	.type nvmlDeviceGetFBCStats, %function
nvmlDeviceGetFBCStats:
	adrp x16, velocpy_nvml_table+600
	ldr x16, [x16, :lo12:velocpy_nvml_table+600]
	br x16
	.size nvmlDeviceGetFBCStats, .-nvmlDeviceGetFBCStats
	.globl nvmlDeviceGetFanControlPolicy_v2
	.hidden nvmlDeviceGetFanControlPolicy_v2
	.type nvmlDeviceGetFanControlPolicy_v2, %function
nvmlDeviceGetFanControlPolicy_v2:
	adrp x16, velocpy_nvml_table+608
	ldr x16, [x16, :lo12:velocpy_nvml_table+608]
	br x16
	.size nvmlDeviceGetFanControlPolicy_v2, .-nvmlDeviceGetFanControlPolicy_v2
	.globl nvmlDeviceGetFanSpeed
	.hidden nvmlDeviceGetFanSpeed
	.type nvmlDeviceGetFanSpeed, %function
nvmlDeviceGetFanSpeed:
	adrp x16, velocpy_nvml_table+616
	ldr x16, [x16, :lo12:velocpy_nvml_table+616]
	br x16
	.size nvmlDeviceGetFanSpeed, .-nvmlDeviceGetFanSpeed
	.globl nvmlDeviceGetFanSpeedRPM
	.hidden nvmlDeviceGetFanSpeedRPM
	.type nvmlDeviceGetFanSpeedRPM, %function
nvmlDeviceGetFanSpeedRPM:
	adrp x16, velocpy_nvml_table+624
	ldr x16, [x16, :lo12:velocpy_nvml_table+624]
	br x16
	.size nvmlDeviceGetFanSpeedRPM, .-nvmlDeviceGetFanSpeedRPM
	.globl nvmlDeviceGetFanSpeed_v2
	.hidden nvmlDeviceGetFanSpeed_v2
	.type nvmlDeviceGetFanSpeed_v2, %function
nvmlDeviceGetFanSpeed_v2:
	adrp x16, velocpy_nvml_table+632
	ldr x16, [x16, :lo12:velocpy_nvml_table+632]
	br x16
	.size nvmlDeviceGetFanSpeed_v2, .-nvmlDeviceGetFanSpeed_v2
	.globl nvmlDeviceGetFieldValues
	.hidden nvmlDeviceGetFieldValues
	.type nvmlDeviceGetFieldValues, %function
nvmlDeviceGetFieldValues:
	adrp x16, velocpy_nvml_table+640
	ldr x16, [x16, :lo12:velocpy_nvml_table+640]
	br x16
	.size nvmlDeviceGetFieldValues, .-nvmlDeviceGetFieldValues
	.globl nvmlDeviceGetGpcClkMinMaxVfOffset
	.hidden nvmlDeviceGetGpcClkMinMaxVfOffset
	.type nvmlDeviceGetGpcClkMinMaxVfOffset, %function
nvmlDeviceGetGpcClkMinMaxVfOffset:
	adrp x16, velocpy_nvml_table+648
	ldr x16, [x16, :lo12:velocpy_nvml_table+648]
	br x16
	.size nvmlDeviceGetGpcClkMinMaxVfOffset, .-nvmlDeviceGetGpcClkMinMaxVfOffset
	.globl nvmlDeviceGetGpcClkVfOffset
	.hidden nvmlDeviceGetGpcClkVfOffset
	.type nvmlDeviceGetGpcClkVfOffset, %function
nvmlDeviceGetGpcClkVfOffset:
	adrp x16, velocpy_nvml_table+656
	ldr x16, [x16, :lo12:velocpy_nvml_table+656]
	br x16
	.size nvmlDeviceGetGpcClkVfOffset, .-nvmlDeviceGetGpcClkVfOffset
	.globl nvmlDeviceGetGpuFabricInfo
	.hidden nvmlDeviceGetGpuFabricInfo
	.type nvmlDeviceGetGpuFabricInfo, %function
nvmlDeviceGetGpuFabricInfo:
	adrp x16, velocpy_nvml_table+664
	ldr x16, [x16, :lo12:velocpy_nvml_table+664]
	br x16
	.size nvmlDeviceGetGpuFabricInfo, .-nvmlDeviceGetGpuFabricInfo
	.globl nvmlDeviceGetGpuFabricInfoV
	.hidden nvmlDeviceGetGpuFabricInfoV
	.type nvmlDeviceGetGpuFabricInfoV, %function
nvmlDeviceGetGpuFabricInfoV:
	adrp x16, velocpy_nvml_table+672
	ldr x16, [x16, :lo12:velocpy_nvml_table+672]
	br x16
	.size nvmlDeviceGetGpuFabricInfoV, .-nvmlDeviceGetGpuFabricInfoV
	.globl nvmlDeviceGetGpuInstanceById
	.hidden nvmlDeviceGetGpuInstanceById
	.type nvmlDeviceGetGpuInstanceById, %function
nvmlDeviceGetGpuInstanceById:
	adrp x16, velocpy_nvml_table+680
	ldr x16, [x16, :lo12:velocpy_nvml_table+680]
	br x16
	.size nvmlDeviceGetGpuInstanceById, .-nvmlDeviceGetGpuInstanceById
	.globl nvmlDeviceGetGpuInstanceId
	.hidden nvmlDeviceGetGpuInstanceId
	.type nvmlDeviceGetGpuInstanceId, %function
nvmlDeviceGetGpuInstanceId:
	adrp x16, velocpy_nvml_table+688
	ldr x16, [x16, :lo12:velocpy_nvml_table+688]
	br x16
	.size nvmlDeviceGetGpuInstanceId, .-nvmlDeviceGetGpuInstanceId
	.globl nvmlDeviceGetGpuInstancePossiblePlacements
	.hidden nvmlDeviceGetGpuInstancePossiblePlacements
	.type nvmlDeviceGetGpuInstancePossiblePlacements, %function
nvmlDeviceGetGpuInstancePossiblePlacements:
	adrp x16, velocpy_nvml_table+696
	ldr x16, [x16, :lo12:velocpy_nvml_table+696]
	br x16
	.size nvmlDeviceGetGpuInstancePossiblePlacements, .-nvmlDeviceGetGpuInstancePossiblePlacements
	.globl nvmlDeviceGetGpuInstancePossiblePlacements_v2
	.hidden nvmlDeviceGetGpuInstancePossiblePlacements_v2
	.type nvmlDeviceGetGpuInstancePossiblePlacements_v2, %function
nvmlDeviceGetGpuInstancePossiblePlacements_v2:
	adrp x16, velocpy_nvml_table+704
	ldr x16, [x16, :lo12:velocpy_nvml_table+704]
	br x16
	.size nvmlDeviceGetGpuInstancePossiblePlacements_v2, .-nvmlDeviceGetGpuInstancePossiblePlacements_v2
	.globl nvmlDeviceGetGpuInstanceProfileInfo
	.hidden nvmlDeviceGetGpuInstanceProfileInfo
	.type nvmlDeviceGetGpuInstanceProfileInfo, %function
nvmlDeviceGetGpuInstanceProfileInfo:
	adrp x16, velocpy_nvml_table+712
	ldr x16, [x16, :lo12:velocpy_nvml_table+712]
	br x16
	.size nvmlDeviceGetGpuInstanceProfileInfo, .-nvmlDeviceGetGpuInstanceProfileInfo
	.globl nvmlDeviceGetGpuInstanceProfileInfoByIdV
	.hidden nvmlDeviceGetGpuInstanceProfileInfoByIdV
	.type nvmlDeviceGetGpuInstanceProfileInfoByIdV, %function
nvmlDeviceGetGpuInstanceProfileInfoByIdV:
	adrp x16, velocpy_nvml_table+720
	ldr x16, [x16, :lo12:velocpy_nvml_table+720]
	br x16
	.size nvmlDeviceGetGpuInstanceProfileInfoByIdV, .-nvmlDeviceGetGpuInstanceProfileInfoByIdV
	.globl nvmlDeviceGetGpuInstanceProfileInfoV
	.hidden nvmlDeviceGetGpuInstanceProfileInfoV
	.type nvmlDeviceGetGpuInstanceProfileInfoV, %function
nvmlDeviceGetGpuInstanceProfileInfoV:
	adrp x16, velocpy_nvml_table+728
	ldr x16, [x16, :lo12:velocpy_nvml_table+728]
	br x16
	.size nvmlDeviceGetGpuInstanceProfileInfoV, .-nvmlDeviceGetGpuInstanceProfileInfoV
	.globl nvmlDeviceGetGpuInstanceRemainingCapacity
	.hidden nvmlDeviceGetGpuInstanceRemainingCapacity
	.type nvmlDeviceGetGpuInstanceRemainingCapacity, %function
nvmlDeviceGetGpuInstanceRemainingCapacity:
	adrp x16, velocpy_nvml_table+736
	ldr x16, [x16, :lo12:velocpy_nvml_table+736]
	br x16
	.size nvmlDeviceGetGpuInstanceRemainingCapacity, .-nvmlDeviceGetGpuInstanceRemainingCapacity
	.globl nvmlDeviceGetGpuInstances
	.hidden nvmlDeviceGetGpuInstances
	.type nvmlDeviceGetGpuInstances, %function
nvmlDeviceGetGpuInstances:
	adrp x16, velocpy_nvml_table+744
	ldr x16, [x16, :lo12:velocpy_nvml_table+744]
	br x16
	.size nvmlDeviceGetGpuInstances, .-nvmlDeviceGetGpuInstances
	.globl nvmlDeviceGetGpuMaxPcieLinkGeneration
	.hidden nvmlDeviceGetGpuMaxPcieLinkGeneration
	.type nvmlDeviceGetGpuMaxPcieLinkGeneration, %function
nvmlDeviceGetGpuMaxPcieLinkGeneration:
	adrp x16, velocpy_nvml_table+752
	ldr x16, [x16, :lo12:velocpy_nvml_table+752]
	br x16
	.size nvmlDeviceGetGpuMaxPcieLinkGeneration, .-nvmlDeviceGetGpuMaxPcieLinkGeneration
	.globl nvmlDeviceGetGpuOperationMode
	.hidden nvmlDeviceGetGpuOperationMode
	.type nvmlDeviceGetGpuOperationMode, %function
nvmlDeviceGetGpuOperationMode:
	adrp x16, velocpy_nvml_table+760
	ldr x16, [x16, :lo12:velocpy_nvml_table+760]
	br x16
	.size nvmlDeviceGetGpuOperationMode, .-nvmlDeviceGetGpuOperationMode
	.globl nvmlDeviceGetGraphicsRunningProcesses
	.hidden nvmlDeviceGetGraphicsRunningProcesses
	.type nvmlDeviceGetGraphicsRunningProcesses, %function
nvmlDeviceGetGraphicsRunningProcesses:
	adrp x16, velocpy_nvml_table+768
	ldr x16, [x16, :lo12:velocpy_nvml_table+768]
	br x16
	.size nvmlDeviceGetGraphicsRunningProcesses, .-nvmlDeviceGetGraphicsRunningProcesses
	.globl nvmlDeviceGetGraphicsRunningProcesses_v2
	.hidden nvmlDeviceGetGraphicsRunningProcesses_v2
	.type nvmlDeviceGetGraphicsRunningProcesses_v2, %function
nvmlDeviceGetGraphicsRunningProcesses_v2:
	adrp x16, velocpy_nvml_table+776
	ldr x16, [x16, :lo12:velocpy_nvml_table+776]
	br x16
	.size nvmlDeviceGetGraphicsRunningProcesses_v2, .-nvmlDeviceGetGraphicsRunningProcesses_v2
	.globl nvmlDeviceGetGraphicsRunningProcesses_v3
	.hidden nvmlDeviceGetGraphicsRunningProcesses_v3
	.type nvmlDeviceGetGraphicsRunningProcesses_v3, %function
nvmlDeviceGetGraphicsRunningProcesses_v3:
	adrp x16, velocpy_nvml_table+784
	ldr x16, [x16, :lo12:velocpy_nvml_table+784]
	br x16
	.size nvmlDeviceGetGraphicsRunningProcesses_v3, .-nvmlDeviceGetGraphicsRunningProcesses_v3
	.globl nvmlDeviceGetGridLicensableFeatures
	.hidden nvmlDeviceGetGridLicensableFeatures
	.type nvmlDeviceGetGridLicensableFeatures, %function
nvmlDeviceGetGridLicensableFeatures:
	adrp x16, velocpy_nvml_table+792
	ldr x16, [x16, :lo12:velocpy_nvml_table+792]
	br x16
	.size nvmlDeviceGetGridLicensableFeatures, .-nvmlDeviceGetGridLicensableFeatures
	.globl nvmlDeviceGetGridLicensableFeatures_v2
	.hidden nvmlDeviceGetGridLicensableFeatures_v2
	.type nvmlDeviceGetGridLicensableFeatures_v2, %function
nvmlDeviceGetGridLicensableFeatures_v2:
	adrp x16, velocpy_nvml_table+800
	ldr x16, [x16, :lo12:velocpy_nvml_table+800]
	br x16
	.size nvmlDeviceGetGridLicensableFeatures_v2, .-nvmlDeviceGetGridLicensableFeatures_v2
	.globl nvmlDeviceGetGridLicensableFeatures_v3
	.hidden nvmlDeviceGetGridLicensableFeatures_v3
	.type nvmlDeviceGetGridLicensableFeatures_v3, %function
nvmlDeviceGetGridLicensableFeatures_v3:
	adrp x16, velocpy_nvml_table+808
	ldr x16, [x16, :lo12:velocpy_nvml_table+808]
	br x16
	.size nvmlDeviceGetGridLicensableFeatures_v3, .-nvmlDeviceGetGridLicensableFeatures_v3
	.globl nvmlDeviceGetGridLicensableFeatures_v4
	.hidden nvmlDeviceGetGridLicensableFeatures_v4
	.type nvmlDeviceGetGridLicensableFeatures_v4, %function
nvmlDeviceGetGridLicensableFeatures_v4:
	adrp x16, velocpy_nvml_table+816
	ldr x16, [x16, :lo12:velocpy_nvml_table+816]
	br x16
	.size nvmlDeviceGetGridLicensableFeatures_v4, .-nvmlDeviceGetGridLicensableFeatures_v4
	.globl nvmlDeviceGetGspFirmwareMode
	.hidden nvmlDeviceGetGspFirmwareMode
	.type nvmlDeviceGetGspFirmwareMode, %function
nvmlDeviceGetGspFirmwareMode:
	adrp x16, velocpy_nvml_table+824
	ldr x16, [x16, :lo12:velocpy_nvml_table+824]
	br x16
	.size nvmlDeviceGetGspFirmwareMode, .-nvmlDeviceGetGspFirmwareMode
	.globl nvmlDeviceGetGspFirmwareVersion
	.hidden nvmlDeviceGetGspFirmwareVersion
	.type nvmlDeviceGetGspFirmwareVersion, %function
nvmlDeviceGetGspFirmwareVersion:
	adrp x16, velocpy_nvml_table+832
	ldr x16, [x16, :lo12:velocpy_nvml_table+832]
	br x16
	.size nvmlDeviceGetGspFirmwareVersion, .-nvmlDeviceGetGspFirmwareVersion
	.globl nvmlDeviceGetHandleByIndex
	.hidden nvmlDeviceGetHandleByIndex
	.type nvmlDeviceGetHandleByIndex, %function
nvmlDeviceGetHandleByIndex:
	adrp x16, velocpy_nvml_table+840
	ldr x16, [x16, :lo12:velocpy_nvml_table+840]
	br x16
	.size nvmlDeviceGetHandleByIndex, .-nvmlDeviceGetHandleByIndex
	.globl nvmlDeviceGetHandleByIndex_v2
	.hidden nvmlDeviceGetHandleByIndex_v2
	.type nvmlDeviceGetHandleByIndex_v2, %function
nvmlDeviceGetHandleByIndex_v2:
	adrp x16, velocpy_nvml_table+848
	ldr x16, [x16, :lo12:velocpy_nvml_table+848]
	br x16
	.size nvmlDeviceGetHandleByIndex_v2, .-nvmlDeviceGetHandleByIndex_v2
	.globl nvmlDeviceGetHandleByPciBusId
	.hidden nvmlDeviceGetHandleByPciBusId
	.type nvmlDeviceGetHandleByPciBusId, %function
nvmlDeviceGetHandleByPciBusId:
	adrp x16, velocpy_nvml_table+856
	ldr x16, [x16, :lo12:velocpy_nvml_table+856]
	br x16
	.size nvmlDeviceGetHandleByPciBusId, .-nvmlDeviceGetHandleByPciBusId
	.globl nvmlDeviceGetHandleByPciBusId_v2
	.hidden nvmlDeviceGetHandleByPciBusId_v2
	.type nvmlDeviceGetHandleByPciBusId_v2, %function
nvmlDeviceGetHandleByPciBusId_v2:
	adrp x16, velocpy_nvml_table+864
	ldr x16, [x16, :lo12:velocpy_nvml_table+864]
	br x16
	.size nvmlDeviceGetHandleByPciBusId_v2, .-nvmlDeviceGetHandleByPciBusId_v2
	.globl nvmlDeviceGetHandleBySerial
	.hidden nvmlDeviceGetHandleBySerial
	.type nvmlDeviceGetHandleBySerial, %function
nvmlDeviceGetHandleBySerial:
	adrp x16, velocpy_nvml_table+872
	ldr x16, [x16, :lo12:velocpy_nvml_table+872]
	br x16
	.size nvmlDeviceGetHandleBySerial, .-nvmlDeviceGetHandleBySerial
	.globl nvmlDeviceGetHandleByUUID
	.hidden nvmlDeviceGetHandleByUUID
	.type nvmlDeviceGetHandleByUUID, %function
nvmlDeviceGetHandleByUUID:
	adrp x16, velocpy_nvml_table+880
	ldr x16, [x16, :lo12:velocpy_nvml_table+880]
	br x16
	.size nvmlDeviceGetHandleByUUID, .-nvmlDeviceGetHandleByUUID
	.globl nvmlDeviceGetHandleByUUIDV
	.hidden nvmlDeviceGetHandleByUUIDV
	.type nvmlDeviceGetHandleByUUIDV, %function
nvmlDeviceGetHandleByUUIDV:
	adrp x16, velocpy_nvml_table+888
	ldr x16, [x16, :lo12:velocpy_nvml_table+888]
	br x16
	.size nvmlDeviceGetHandleByUUIDV, .-nvmlDeviceGetHandleByUUIDV
	.globl nvmlDeviceGetHostVgpuMode
	.hidden nvmlDeviceGetHostVgpuMode
	.type nvmlDeviceGetHostVgpuMode, %function
nvmlDeviceGetHostVgpuMode:
	adrp x16, velocpy_nvml_table+896
	ldr x16, [x16, :lo12:velocpy_nvml_table+896]
	br x16
	.size nvmlDeviceGetHostVgpuMode, .-nvmlDeviceGetHostVgpuMode
	.globl nvmlDeviceGetIndex
	.hidden nvmlDeviceGetIndex
	.type nvmlDeviceGetIndex, %function
nvmlDeviceGetIndex:
	adrp x16, velocpy_nvml_table+904
	ldr x16, [x16, :lo12:velocpy_nvml_table+904]
	br x16
	.size nvmlDeviceGetIndex, .-nvmlDeviceGetIndex
	.globl nvmlDeviceGetInforomConfigurationChecksum
	.hidden nvmlDeviceGetInforomConfigurationChecksum
	.type nvmlDeviceGetInforomConfigurationChecksum, %function
nvmlDeviceGetInforomConfigurationChecksum:
	adrp x16, velocpy_nvml_table+912
	ldr x16, [x16, :lo12:velocpy_nvml_table+912]
	br x16
	.size nvmlDeviceGetInforomConfigurationChecksum, .-nvmlDeviceGetInforomConfigurationChecksum
	.globl nvmlDeviceGetInforomImageVersion
	.hidden nvmlDeviceGetInforomImageVersion
	.type nvmlDeviceGetInforomImageVersion, %function
nvmlDeviceGetInforomImageVersion:
	adrp x16, velocpy_nvml_table+920
	ldr x16, [x16, :lo12:velocpy_nvml_table+920]
	br x16
	.size nvmlDeviceGetInforomImageVersion, .-nvmlDeviceGetInforomImageVersion
	.globl nvmlDeviceGetInforomVersion
	.hidden nvmlDeviceGetInforomVersion
	.type nvmlDeviceGetInforomVersion, %function
nvmlDeviceGetInforomVersion:
	adrp x16, velocpy_nvml_table+928
	ldr x16, [x16, :lo12:velocpy_nvml_table+928]
	br x16
	.size nvmlDeviceGetInforomVersion, .-nvmlDeviceGetInforomVersion
	.globl nvmlDeviceGetIrqNum
	.hidden nvmlDeviceGetIrqNum
	.type nvmlDeviceGetIrqNum, %function
nvmlDeviceGetIrqNum:
	adrp x16, velocpy_nvml_table+936
	ldr x16, [x16, :lo12:velocpy_nvml_table+936]
	br x16
	.size nvmlDeviceGetIrqNum, .-nvmlDeviceGetIrqNum
	.globl nvmlDeviceGetJpgUtilization
	.hidden nvmlDeviceGetJpgUtilization
	.type nvmlDeviceGetJpgUtilization, %function
nvmlDeviceGetJpgUtilization:
	adrp x16, velocpy_nvml_table+944
	ldr x16, [x16, :lo12:velocpy_nvml_table+944]
	br x16
	.size nvmlDeviceGetJpgUtilization, .-nvmlDeviceGetJpgUtilization
	.globl nvmlDeviceGetLastBBXFlushTime
	.hidden nvmlDeviceGetLastBBXFlushTime
	.type nvmlDeviceGetLastBBXFlushTime, %function
nvmlDeviceGetLastBBXFlushTime:
	adrp x16, velocpy_nvml_table+952
	ldr x16, [x16, :lo12:velocpy_nvml_table+952]
	br x16
	.size nvmlDeviceGetLastBBXFlushTime, .-nvmlDeviceGetLastBBXFlushTime
	.globl nvmlDeviceGetMPSComputeRunningProcesses
	.hidden nvmlDeviceGetMPSComputeRunningProcesses
	.type nvmlDeviceGetMPSComputeRunningProcesses, %function
nvmlDeviceGetMPSComputeRunningProcesses:
	adrp x16, velocpy_nvml_table+960
	ldr x16, [x16, :lo12:velocpy_nvml_table+960]
	br x16
	.size nvmlDeviceGetMPSComputeRunningProcesses, .-nvmlDeviceGetMPSComputeRunningProcesses
	.globl nvmlDeviceGetMPSComputeRunningProcesses_v2
	.hidden nvmlDeviceGetMPSComputeRunningProcesses_v2
	.type nvmlDeviceGetMPSComputeRunningProcesses_v2, %function
nvmlDeviceGetMPSComputeRunningProcesses_v2:
	adrp x16, velocpy_nvml_table+968
	ldr x16, [x16, :lo12:velocpy_nvml_table+968]
	br x16
	.size nvmlDeviceGetMPSComputeRunningProcesses_v2, .-nvmlDeviceGetMPSComputeRunningProcesses_v2
	.globl nvmlDeviceGetMPSComputeRunningProcesses_v3
	.hidden nvmlDeviceGetMPSComputeRunningProcesses_v3
	.type nvmlDeviceGetMPSComputeRunningProcesses_v3, %function
nvmlDeviceGetMPSComputeRunningProcesses_v3:
	adrp x16, velocpy_nvml_table+976
	ldr x16, [x16, :lo12:velocpy_nvml_table+976]
	br x16
	.size nvmlDeviceGetMPSComputeRunningProcesses_v3, .-nvmlDeviceGetMPSComputeRunningProcesses_v3
	.globl nvmlDeviceGetMarginTemperature
	.hidden nvmlDeviceGetMarginTemperature
	.type nvmlDeviceGetMarginTemperature, %function
nvmlDeviceGetMarginTemperature:
	adrp x16, velocpy_nvml_table+984
	ldr x16, [x16, :lo12:velocpy_nvml_table+984]
	br x16
	.size nvmlDeviceGetMarginTemperature, .-nvmlDeviceGetMarginTemperature
	.globl nvmlDeviceGetMaxClockInfo
	.hidden nvmlDeviceGetMaxClockInfo
	.type nvmlDeviceGetMaxClockInfo, %function
nvmlDeviceGetMaxClockInfo:
	adrp x16, velocpy_nvml_table+992
	ldr x16, [x16, :lo12:velocpy_nvml_table+992]
	br x16
	.size nvmlDeviceGetMaxClockInfo, .-nvmlDeviceGetMaxClockInfo
	.globl nvmlDeviceGetMaxCustomerBoostClock
	.hidden nvmlDeviceGetMaxCustomerBoostClock
	.type nvmlDeviceGetMaxCustomerBoostClock, %function
nvmlDeviceGetMaxCustomerBoostClock:
	adrp x16, velocpy_nvml_table+1000
	ldr x16, [x16, :lo12:velocpy_nvml_table+1000]
	br x16
	.size nvmlDeviceGetMaxCustomerBoostClock, .-nvmlDeviceGetMaxCustomerBoostClock
	.globl nvmlDeviceGetMaxMigDeviceCount
	.hidden nvmlDeviceGetMaxMigDeviceCount
	.type nvmlDeviceGetMaxMigDeviceCount, %function
nvmlDeviceGetMaxMigDeviceCount:
	adrp x16, velocpy_nvml_table+1008
	ldr x16, [x16, :lo12:velocpy_nvml_table+1008]
	br x16
	.size nvmlDeviceGetMaxMigDeviceCount, .-nvmlDeviceGetMaxMigDeviceCount
	.globl nvmlDeviceGetMaxPcieLinkGeneration
	.hidden nvmlDeviceGetMaxPcieLinkGeneration
	.type nvmlDeviceGetMaxPcieLinkGeneration, %function
nvmlDeviceGetMaxPcieLinkGeneration:
	adrp x16, velocpy_nvml_table+1016
	ldr x16, [x16, :lo12:velocpy_nvml_table+1016]
	br x16
	.size nvmlDeviceGetMaxPcieLinkGeneration, .-nvmlDeviceGetMaxPcieLinkGeneration
	.globl nvmlDeviceGetMaxPcieLinkWidth
	.hidden nvmlDeviceGetMaxPcieLinkWidth
	.type nvmlDeviceGetMaxPcieLinkWidth, %function
nvmlDeviceGetMaxPcieLinkWidth:
	adrp x16, velocpy_nvml_table+1024
	ldr x16, [x16, :lo12:velocpy_nvml_table+1024]
	br x16
	.size nvmlDeviceGetMaxPcieLinkWidth, .-nvmlDeviceGetMaxPcieLinkWidth
	.globl nvmlDeviceGetMemClkMinMaxVfOffset
	.hidden nvmlDeviceGetMemClkMinMaxVfOffset
	.type nvmlDeviceGetMemClkMinMaxVfOffset, %function
nvmlDeviceGetMemClkMinMaxVfOffset:
	adrp x16, velocpy_nvml_table+1032
	ldr x16, [x16, :lo12:velocpy_nvml_table+1032]
	br x16
	.size nvmlDeviceGetMemClkMinMaxVfOffset, .-nvmlDeviceGetMemClkMinMaxVfOffset
	.globl nvmlDeviceGetMemClkVfOffset
	.hidden nvmlDeviceGetMemClkVfOffset
	.type nvmlDeviceGetMemClkVfOffset, %function
nvmlDeviceGetMemClkVfOffset:
	adrp x16, velocpy_nvml_table+1040
	ldr x16, [x16, :lo12:velocpy_nvml_table+1040]
	br x16
	.size nvmlDeviceGetMemClkVfOffset, .-nvmlDeviceGetMemClkVfOffset
	.globl nvmlDeviceGetMemoryAffinity
	.hidden nvmlDeviceGetMemoryAffinity
	.type nvmlDeviceGetMemoryAffinity, %function
nvmlDeviceGetMemoryAffinity:
	adrp x16, velocpy_nvml_table+1048
	ldr x16, [x16, :lo12:velocpy_nvml_table+1048]
	br x16
	.size nvmlDeviceGetMemoryAffinity, .-nvmlDeviceGetMemoryAffinity
	.globl nvmlDeviceGetMemoryBusWidth
	.hidden nvmlDeviceGetMemoryBusWidth
	.type nvmlDeviceGetMemoryBusWidth, %function
nvmlDeviceGetMemoryBusWidth:
	adrp x16, velocpy_nvml_table+1056
	ldr x16, [x16, :lo12:velocpy_nvml_table+1056]
	br x16
	.size nvmlDeviceGetMemoryBusWidth, .-nvmlDeviceGetMemoryBusWidth
	.globl nvmlDeviceGetMemoryErrorCounter
	.hidden nvmlDeviceGetMemoryErrorCounter
	.type nvmlDeviceGetMemoryErrorCounter, %function
nvmlDeviceGetMemoryErrorCounter:
	adrp x16, velocpy_nvml_table+1064
	ldr x16, [x16, :lo12:velocpy_nvml_table+1064]
	br x16
	.size nvmlDeviceGetMemoryErrorCounter, .-nvmlDeviceGetMemoryErrorCounter
	.globl nvmlDeviceGetMemoryInfo
	.hidden nvmlDeviceGetMemoryInfo
	.type nvmlDeviceGetMemoryInfo, %function
nvmlDeviceGetMemoryInfo:
	adrp x16, velocpy_nvml_table+1072
	ldr x16, [x16, :lo12:velocpy_nvml_table+1072]
	br x16
	.size nvmlDeviceGetMemoryInfo, .-nvmlDeviceGetMemoryInfo
	.globl nvmlDeviceGetMemoryInfo_v2
	.hidden nvmlDeviceGetMemoryInfo_v2
	.type nvmlDeviceGetMemoryInfo_v2, %function
nvmlDeviceGetMemoryInfo_v2:
	adrp x16, velocpy_nvml_table+1080
	ldr x16, [x16, :lo12:velocpy_nvml_table+1080]
	br x16
	.size nvmlDeviceGetMemoryInfo_v2, .-nvmlDeviceGetMemoryInfo_v2
	.globl nvmlDeviceGetMigDeviceHandleByIndex
	.hidden nvmlDeviceGetMigDeviceHandleByIndex
	.type nvmlDeviceGetMigDeviceHandleByIndex, %function
nvmlDeviceGetMigDeviceHandleByIndex:
	adrp x16, velocpy_nvml_table+1088
	ldr x16, [x16, :lo12:velocpy_nvml_table+1088]
	br x16
	.size nvmlDeviceGetMigDeviceHandleByIndex, .-nvmlDeviceGetMigDeviceHandleByIndex
	.globl nvmlDeviceGetMigMode
	.hidden nvmlDeviceGetMigMode
	.type nvmlDeviceGetMigMode, %function
nvmlDeviceGetMigMode:
	adrp x16, velocpy_nvml_table+1096
	ldr x16, [x16, :lo12:velocpy_nvml_table+1096]
	br x16
	.size nvmlDeviceGetMigMode, .-nvmlDeviceGetMigMode
	.globl nvmlDeviceGetMinMaxClockOfPState
	.hidden nvmlDeviceGetMinMaxClockOfPState
	.type nvmlDeviceGetMinMaxClockOfPState, %function
nvmlDeviceGetMinMaxClockOfPState:
	adrp x16, velocpy_nvml_table+1104
	ldr x16, [x16, :lo12:velocpy_nvml_table+1104]
	br x16
	.size nvmlDeviceGetMinMaxClockOfPState, .-nvmlDeviceGetMinMaxClockOfPState
	.globl nvmlDeviceGetMinMaxFanSpeed
	.hidden nvmlDeviceGetMinMaxFanSpeed
	.type nvmlDeviceGetMinMaxFanSpeed, %function
nvmlDeviceGetMinMaxFanSpeed:
	adrp x16, velocpy_nvml_table+1112
	ldr x16, [x16, :lo12:velocpy_nvml_table+1112]
	br x16
	.size nvmlDeviceGetMinMaxFanSpeed, .-nvmlDeviceGetMinMaxFanSpeed
	.globl nvmlDeviceGetMinorNumber
	.hidden nvmlDeviceGetMinorNumber
	.type nvmlDeviceGetMinorNumber, %function
nvmlDeviceGetMinorNumber:
	adrp x16, velocpy_nvml_table+1120
	ldr x16, [x16, :lo12:velocpy_nvml_table+1120]
	br x16
	.size nvmlDeviceGetMinorNumber, .-nvmlDeviceGetMinorNumber
	.globl nvmlDeviceGetModuleId
	.hidden nvmlDeviceGetModuleId
	.type nvmlDeviceGetModuleId, %function
nvmlDeviceGetModuleId:
	adrp x16, velocpy_nvml_table+1128
	ldr x16, [x16, :lo12:velocpy_nvml_table+1128]
	br x16
	.size nvmlDeviceGetModuleId, .-nvmlDeviceGetModuleId
	.globl nvmlDeviceGetMultiGpuBoard
	.hidden nvmlDeviceGetMultiGpuBoard
	.type nvmlDeviceGetMultiGpuBoard, %function
nvmlDeviceGetMultiGpuBoard:
	adrp x16, velocpy_nvml_table+1136
	ldr x16, [x16, :lo12:velocpy_nvml_table+1136]
	br x16
	.size nvmlDeviceGetMultiGpuBoard, .-nvmlDeviceGetMultiGpuBoard
	.globl nvmlDeviceGetName
	.hidden nvmlDeviceGetName
	.type nvmlDeviceGetName, %function
nvmlDeviceGetName:
	adrp x16, velocpy_nvml_table+1144
	ldr x16, [x16, :lo12:velocpy_nvml_table+1144]
	br x16
	.size nvmlDeviceGetName, .-nvmlDeviceGetName
	.globl nvmlDeviceGetNumFans
	.hidden nvmlDeviceGetNumFans
	.type nvmlDeviceGetNumFans, %function
nvmlDeviceGetNumFans:
	adrp x16, velocpy_nvml_table+1152
	ldr x16, [x16, :lo12:velocpy_nvml_table+1152]
	br x16
	.size nvmlDeviceGetNumFans, .-nvmlDeviceGetNumFans
	.globl nvmlDeviceGetNumGpuCores
	.hidden nvmlDeviceGetNumGpuCores
	.type nvmlDeviceGetNumGpuCores, %function
nvmlDeviceGetNumGpuCores:
	adrp x16, velocpy_nvml_table+1160
	ldr x16, [x16, :lo12:velocpy_nvml_table+1160]
	br x16
	.size nvmlDeviceGetNumGpuCores, .-nvmlDeviceGetNumGpuCores
	.globl nvmlDeviceGetNumaNodeId
	.hidden nvmlDeviceGetNumaNodeId
	.type nvmlDeviceGetNumaNodeId, %function
nvmlDeviceGetNumaNodeId:
	adrp x16, velocpy_nvml_table+1168
	ldr x16, [x16, :lo12:velocpy_nvml_table+1168]
	br x16
	.size nvmlDeviceGetNumaNodeId, .-nvmlDeviceGetNumaNodeId
	.globl nvmlDeviceGetNvLinkCapability
	.hidden nvmlDeviceGetNvLinkCapability
	.type nvmlDeviceGetNvLinkCapability, %function
nvmlDeviceGetNvLinkCapability:
	adrp x16, velocpy_nvml_table+1176
	ldr x16, [x16, :lo12:velocpy_nvml_table+1176]
	br x16
	.size nvmlDeviceGetNvLinkCapability, .-nvmlDeviceGetNvLinkCapability
	.globl nvmlDeviceGetNvLinkErrorCounter
	.hidden nvmlDeviceGetNvLinkErrorCounter
	.type nvmlDeviceGetNvLinkErrorCounter, %function
nvmlDeviceGetNvLinkErrorCounter:
	adrp x16, velocpy_nvml_table+1184
	ldr x16, [x16, :lo12:velocpy_nvml_table+1184]
	br x16
	.size nvmlDeviceGetNvLinkErrorCounter, .-nvmlDeviceGetNvLinkErrorCounter
	.globl nvmlDeviceGetNvLinkInfo
	.hidden nvmlDeviceGetNvLinkInfo
	.type nvmlDeviceGetNvLinkInfo, %function
nvmlDeviceGetNvLinkInfo:
	adrp x16, velocpy_nvml_table+1192
	ldr x16, [x16, :lo12:velocpy_nvml_table+1192]
	br x16
	.size nvmlDeviceGetNvLinkInfo, .-nvmlDeviceGetNvLinkInfo
	.globl nvmlDeviceGetNvLinkRemoteDeviceType
	.hidden nvmlDeviceGetNvLinkRemoteDeviceType
	.type nvmlDeviceGetNvLinkRemoteDeviceType, %function
nvmlDeviceGetNvLinkRemoteDeviceType:
	adrp x16, velocpy_nvml_table+1200
	ldr x16, [x16, :lo12:velocpy_nvml_table+1200]
	br x16
	.size nvmlDeviceGetNvLinkRemoteDeviceType, .-nvmlDeviceGetNvLinkRemoteDeviceType
	.globl nvmlDeviceGetNvLinkRemotePciInfo
	.hidden nvmlDeviceGetNvLinkRemotePciInfo
	.type nvmlDeviceGetNvLinkRemotePciInfo, %function
nvmlDeviceGetNvLinkRemotePciInfo:
	adrp x16, velocpy_nvml_table+1208
	ldr x16, [x16, :lo12:velocpy_nvml_table+1208]
	br x16
	.size nvmlDeviceGetNvLinkRemotePciInfo, .-nvmlDeviceGetNvLinkRemotePciInfo
	.globl nvmlDeviceGetNvLinkRemotePciInfo_v2
	.hidden nvmlDeviceGetNvLinkRemotePciInfo_v2
	.type nvmlDeviceGetNvLinkRemotePciInfo_v2, %function
nvmlDeviceGetNvLinkRemotePciInfo_v2:
	adrp x16, velocpy_nvml_table+1216
	ldr x16, [x16, :lo12:velocpy_nvml_table+1216]
	br x16
	.size nvmlDeviceGetNvLinkRemotePciInfo_v2, .-nvmlDeviceGetNvLinkRemotePciInfo_v2
	.globl nvmlDeviceGetNvLinkState
	.hidden nvmlDeviceGetNvLinkState
	.type nvmlDeviceGetNvLinkState, %function
nvmlDeviceGetNvLinkState:
	adrp x16, velocpy_nvml_table+1224
	ldr x16, [x16, :lo12:velocpy_nvml_table+1224]
	br x16
	.size nvmlDeviceGetNvLinkState, .-nvmlDeviceGetNvLinkState
	.globl nvmlDeviceGetNvLinkUtilizationControl
	.hidden nvmlDeviceGetNvLinkUtilizationControl
	.type nvmlDeviceGetNvLinkUtilizationControl, %function
nvmlDeviceGetNvLinkUtilizationControl:
	adrp x16, velocpy_nvml_table+1232
	ldr x16, [x16, :lo12:velocpy_nvml_table+1232]
	br x16
	.size nvmlDeviceGetNvLinkUtilizationControl, .-nvmlDeviceGetNvLinkUtilizationControl
	.globl nvmlDeviceGetNvLinkUtilizationCounter
	.hidden nvmlDeviceGetNvLinkUtilizationCounter
	.type nvmlDeviceGetNvLinkUtilizationCounter, %function
nvmlDeviceGetNvLinkUtilizationCounter:
	adrp x16, velocpy_nvml_table+1240
	ldr x16, [x16, :lo12:velocpy_nvml_table+1240]
	br x16
	.size nvmlDeviceGetNvLinkUtilizationCounter, .-nvmlDeviceGetNvLinkUtilizationCounter
	.globl nvmlDeviceGetNvLinkVersion
	.hidden nvmlDeviceGetNvLinkVersion
	.type nvmlDeviceGetNvLinkVersion, %function
nvmlDeviceGetNvLinkVersion:
	adrp x16, velocpy_nvml_table+1248
	ldr x16, [x16, :lo12:velocpy_nvml_table+1248]
	br x16
	.size nvmlDeviceGetNvLinkVersion, .-nvmlDeviceGetNvLinkVersion
	.globl nvmlDeviceGetNvlinkBwMode
	.hidden nvmlDeviceGetNvlinkBwMode
	.type nvmlDeviceGetNvlinkBwMode, %function
nvmlDeviceGetNvlinkBwMode:
	adrp x16, velocpy_nvml_table+1256
	ldr x16, [x16, :lo12:velocpy_nvml_table+1256]
	br x16
	.size nvmlDeviceGetNvlinkBwMode, .-nvmlDeviceGetNvlinkBwMode
	.globl nvmlDeviceGetNvlinkSupportedBwModes
	.hidden nvmlDeviceGetNvlinkSupportedBwModes
	.type nvmlDeviceGetNvlinkSupportedBwModes, %function
nvmlDeviceGetNvlinkSupportedBwModes:
	adrp x16, velocpy_nvml_table+1264
	ldr x16, [x16, :lo12:velocpy_nvml_table+1264]
	br x16
	.size nvmlDeviceGetNvlinkSupportedBwModes, .-nvmlDeviceGetNvlinkSupportedBwModes
	.globl nvmlDeviceGetOfaUtilization
	.hidden nvmlDeviceGetOfaUtilization
	.type nvmlDeviceGetOfaUtilization, %function
nvmlDeviceGetOfaUtilization:
	adrp x16, velocpy_nvml_table+1272
	ldr x16, [x16, :lo12:velocpy_nvml_table+1272]
	br x16
	.size nvmlDeviceGetOfaUtilization, .-nvmlDeviceGetOfaUtilization
	.globl nvmlDeviceGetP2PStatus
	.hidden nvmlDeviceGetP2PStatus
	.type nvmlDeviceGetP2PStatus, %function
nvmlDeviceGetP2PStatus:
	adrp x16, velocpy_nvml_table+1280
	ldr x16, [x16, :lo12:velocpy_nvml_table+1280]
	br x16
	.size nvmlDeviceGetP2PStatus, .-nvmlDeviceGetP2PStatus
	.globl nvmlDeviceGetPciInfo
	.hidden nvmlDeviceGetPciInfo
	.type nvmlDeviceGetPciInfo, %function
nvmlDeviceGetPciInfo:
	adrp x16, velocpy_nvml_table+1288
	ldr x16, [x16, :lo12:velocpy_nvml_table+1288]
	br x16
	.size nvmlDeviceGetPciInfo, .-nvmlDeviceGetPciInfo
	.globl nvmlDeviceGetPciInfoExt
	.hidden nvmlDeviceGetPciInfoExt
	.type nvmlDeviceGetPciInfoExt, %function
nvmlDeviceGetPciInfoExt:
	adrp x16, velocpy_nvml_table+1296
	ldr x16, [x16, :lo12:velocpy_nvml_table+1296]
	br x16
	.size nvmlDeviceGetPciInfoExt, .-nvmlDeviceGetPciInfoExt
	.globl nvmlDeviceGetPciInfo_v2
	.hidden nvmlDeviceGetPciInfo_v2
	.type nvmlDeviceGetPciInfo_v2, %function
nvmlDeviceGetPciInfo_v2:
	adrp x16, velocpy_nvml_table+1304
	ldr x16, [x16, :lo12:velocpy_nvml_table+1304]
	br x16
	.size nvmlDeviceGetPciInfo_v2, .-nvmlDeviceGetPciInfo_v2
	.globl nvmlDeviceGetPciInfo_v3
	.hidden nvmlDeviceGetPciInfo_v3
	.type nvmlDeviceGetPciInfo_v3, %function
nvmlDeviceGetPciInfo_v3:
	adrp x16, velocpy_nvml_table+1312
	ldr x16, [x16, :lo12:velocpy_nvml_table+1312]
	br x16
	.size nvmlDeviceGetPciInfo_v3, .-nvmlDeviceGetPciInfo_v3
	.globl nvmlDeviceGetPcieLinkMaxSpeed
	.hidden nvmlDeviceGetPcieLinkMaxSpeed
	.type nvmlDeviceGetPcieLinkMaxSpeed, %function
nvmlDeviceGetPcieLinkMaxSpeed:
	adrp x16, velocpy_nvml_table+1320
	ldr x16, [x16, :lo12:velocpy_nvml_table+1320]
	br x16
	.size nvmlDeviceGetPcieLinkMaxSpeed, .-nvmlDeviceGetPcieLinkMaxSpeed
	.globl nvmlDeviceGetPcieReplayCounter
	.hidden nvmlDeviceGetPcieReplayCounter
	.type nvmlDeviceGetPcieReplayCounter, %function
nvmlDeviceGetPcieReplayCounter:
	adrp x16, velocpy_nvml_table+1328
	ldr x16, [x16, :lo12:velocpy_nvml_table+1328]
	br x16
	.size nvmlDeviceGetPcieReplayCounter, .-nvmlDeviceGetPcieReplayCounter
	.globl nvmlDeviceGetPcieSpeed
	.hidden nvmlDeviceGetPcieSpeed
	.type nvmlDeviceGetPcieSpeed, %function
nvmlDeviceGetPcieSpeed:
	adrp x16, velocpy_nvml_table+1336
	ldr x16, [x16, :lo12:velocpy_nvml_table+1336]
	br x16
	.size nvmlDeviceGetPcieSpeed, .-nvmlDeviceGetPcieSpeed
	.globl nvmlDeviceGetPcieThroughput
	.hidden nvmlDeviceGetPcieThroughput
	.type nvmlDeviceGetPcieThroughput, %function
nvmlDeviceGetPcieThroughput:
	adrp x16, velocpy_nvml_table+1344
	ldr x16, [x16, :lo12:velocpy_nvml_table+1344]
	br x16
	.size nvmlDeviceGetPcieThroughput, .-nvmlDeviceGetPcieThroughput
	.globl nvmlDeviceGetPdi
	.hidden nvmlDeviceGetPdi
	.type nvmlDeviceGetPdi, %function
nvmlDeviceGetPdi:
	adrp x16, velocpy_nvml_table+1352
	ldr x16, [x16, :lo12:velocpy_nvml_table+1352]
	br x16
	.size nvmlDeviceGetPdi, .-nvmlDeviceGetPdi
	.globl nvmlDeviceGetPerformanceModes
	.hidden nvmlDeviceGetPerformanceModes
	.type nvmlDeviceGetPerformanceModes, %function
nvmlDeviceGetPerformanceModes:
	adrp x16, velocpy_nvml_table+1360
	ldr x16, [x16, :lo12:velocpy_nvml_table+1360]
	br x16
	.size nvmlDeviceGetPerformanceModes, .-nvmlDeviceGetPerformanceModes
	.globl nvmlDeviceGetPerformanceState
	.hidden nvmlDeviceGetPerformanceState
	.type nvmlDeviceGetPerformanceState, %function
nvmlDeviceGetPerformanceState:
	adrp x16, velocpy_nvml_table+1368
	ldr x16, [x16, :lo12:velocpy_nvml_table+1368]
	br x16
	.size nvmlDeviceGetPerformanceState, .-nvmlDeviceGetPerformanceState
	.globl nvmlDeviceGetPersistenceMode
	.hidden nvmlDeviceGetPersistenceMode
	.type nvmlDeviceGetPersistenceMode, %function
nvmlDeviceGetPersistenceMode:
	adrp x16, velocpy_nvml_table+1376
	ldr x16, [x16, :lo12:velocpy_nvml_table+1376]
	br x16
	.size nvmlDeviceGetPersistenceMode, .-nvmlDeviceGetPersistenceMode
	.globl nvmlDeviceGetPgpuMetadataString
	.hidden nvmlDeviceGetPgpuMetadataString
	.type nvmlDeviceGetPgpuMetadataString, %function
nvmlDeviceGetPgpuMetadataString:
	adrp x16, velocpy_nvml_table+1384
	ldr x16, [x16, :lo12:velocpy_nvml_table+1384]
	br x16
	.size nvmlDeviceGetPgpuMetadataString, .-nvmlDeviceGetPgpuMetadataString
	.globl nvmlDeviceGetPlatformInfo
	.hidden nvmlDeviceGetPlatformInfo
	.type nvmlDeviceGetPlatformInfo, %function
nvmlDeviceGetPlatformInfo:
	adrp x16, velocpy_nvml_table+1392
	ldr x16, [x16, :lo12:velocpy_nvml_table+1392]
	br x16
	.size nvmlDeviceGetPlatformInfo, .-nvmlDeviceGetPlatformInfo
	.globl nvmlDeviceGetPowerManagementDefaultLimit
	.hidden nvmlDeviceGetPowerManagementDefaultLimit
	.type nvmlDeviceGetPowerManagementDefaultLimit, %function
nvmlDeviceGetPowerManagementDefaultLimit:
	adrp x16, velocpy_nvml_table+1400
	ldr x16, [x16, :lo12:velocpy_nvml_table+1400]
	br x16
	.size nvmlDeviceGetPowerManagementDefaultLimit, .-nvmlDeviceGetPowerManagementDefaultLimit
	.globl nvmlDeviceGetPowerManagementLimit
	.hidden nvmlDeviceGetPowerManagementLimit
	.type nvmlDeviceGetPowerManagementLimit, %function
nvmlDeviceGetPowerManagementLimit:
	adrp x16, velocpy_nvml_table+1408
	ldr x16, [x16, :lo12:velocpy_nvml_table+1408]
	br x16
	.size nvmlDeviceGetPowerManagementLimit, .-nvmlDeviceGetPowerManagementLimit
	.globl nvmlDeviceGetPowerManagementLimitConstraints
	.hidden nvmlDeviceGetPowerManagementLimitConstraints
	.type nvmlDeviceGetPowerManagementLimitConstraints, %function
nvmlDeviceGetPowerManagementLimitConstraints:
	adrp x16, velocpy_nvml_table+1416
	ldr x16, [x16, :lo12:velocpy_nvml_table+1416]
	br x16
	.size nvmlDeviceGetPowerManagementLimitConstraints, .-nvmlDeviceGetPowerManagementLimitConstraints
	.globl nvmlDeviceGetPowerManagementMode
	.hidden nvmlDeviceGetPowerManagementMode
	.type nvmlDeviceGetPowerManagementMode, %function
nvmlDeviceGetPowerManagementMode:
	adrp x16, velocpy_nvml_table+1424
	ldr x16, [x16, :lo12:velocpy_nvml_table+1424]
	br x16
	.size nvmlDeviceGetPowerManagementMode, .-nvmlDeviceGetPowerManagementMode
	.globl nvmlDeviceGetPowerMizerMode_v1
	.hidden nvmlDeviceGetPowerMizerMode_v1
	.type nvmlDeviceGetPowerMizerMode_v1, %function
nvmlDeviceGetPowerMizerMode_v1:
	adrp x16, velocpy_nvml_table+1432
	ldr x16, [x16, :lo12:velocpy_nvml_table+1432]
	br x16
	.size nvmlDeviceGetPowerMizerMode_v1, .-nvmlDeviceGetPowerMizerMode_v1
	.globl nvmlDeviceGetPowerSource
	.hidden nvmlDeviceGetPowerSource
	.type nvmlDeviceGetPowerSource, %function
nvmlDeviceGetPowerSource:
	adrp x16, velocpy_nvml_table+1440
	ldr x16, [x16, :lo12:velocpy_nvml_table+1440]
	br x16
	.size nvmlDeviceGetPowerSource, .-nvmlDeviceGetPowerSource
	.globl nvmlDeviceGetPowerState
	.hidden nvmlDeviceGetPowerState
	.type nvmlDeviceGetPowerState, %function
nvmlDeviceGetPowerState:
	adrp x16, velocpy_nvml_table+1448
	ldr x16, [x16, :lo12:velocpy_nvml_table+1448]
	br x16
	.size nvmlDeviceGetPowerState, .-nvmlDeviceGetPowerState
	.globl nvmlDeviceGetPowerUsage
	.hidden nvmlDeviceGetPowerUsage
	.type nvmlDeviceGetPowerUsage, %function
nvmlDeviceGetPowerUsage:
	adrp x16, velocpy_nvml_table+1456
	ldr x16, [x16, :lo12:velocpy_nvml_table+1456]
	br x16
	.size nvmlDeviceGetPowerUsage, .-nvmlDeviceGetPowerUsage
	.globl nvmlDeviceGetProcessUtilization
	.hidden nvmlDeviceGetProcessUtilization
	.type nvmlDeviceGetProcessUtilization, %function
nvmlDeviceGetProcessUtilization:
	adrp x16, velocpy_nvml_table+1464
	ldr x16, [x16, :lo12:velocpy_nvml_table+1464]
	br x16
	.size nvmlDeviceGetProcessUtilization, .-nvmlDeviceGetProcessUtilization
	.globl nvmlDeviceGetProcessesUtilizationInfo
	.hidden nvmlDeviceGetProcessesUtilizationInfo
	.type nvmlDeviceGetProcessesUtilizationInfo, %function
nvmlDeviceGetProcessesUtilizationInfo:
	adrp x16, velocpy_nvml_table+1472
	ldr x16, [x16, :lo12:velocpy_nvml_table+1472]
	br x16
	.size nvmlDeviceGetProcessesUtilizationInfo, .-nvmlDeviceGetProcessesUtilizationInfo
	.globl nvmlDeviceGetRemappedRows
	.hidden nvmlDeviceGetRemappedRows
	.type nvmlDeviceGetRemappedRows, %function
nvmlDeviceGetRemappedRows:
	adrp x16, velocpy_nvml_table+1480
	ldr x16, [x16, :lo12:velocpy_nvml_table+1480]
	br x16
	.size nvmlDeviceGetRemappedRows, .-nvmlDeviceGetRemappedRows
	.globl nvmlDeviceGetRepairStatus
	.hidden nvmlDeviceGetRepairStatus
	.type nvmlDeviceGetRepairStatus, %function
nvmlDeviceGetRepairStatus:
	adrp x16, velocpy_nvml_table+1488
	ldr x16, [x16, :lo12:velocpy_nvml_table+1488]
	br x16
	.size nvmlDeviceGetRepairStatus, .-nvmlDeviceGetRepairStatus
	.globl nvmlDeviceGetRetiredPages
	.hidden nvmlDeviceGetRetiredPages
	.type nvmlDeviceGetRetiredPages, %function
nvmlDeviceGetRetiredPages:
	adrp x16, velocpy_nvml_table+1496
	ldr x16, [x16, :lo12:velocpy_nvml_table+1496]
	br x16
	.size nvmlDeviceGetRetiredPages, .-nvmlDeviceGetRetiredPages
	.globl nvmlDeviceGetRetiredPagesPendingStatus
	.hidden nvmlDeviceGetRetiredPagesPendingStatus
	.type nvmlDeviceGetRetiredPagesPendingStatus, %function
nvmlDeviceGetRetiredPagesPendingStatus:
	adrp x16, velocpy_nvml_table+1504
	ldr x16, [x16, :lo12:velocpy_nvml_table+1504]
	br x16
	.size nvmlDeviceGetRetiredPagesPendingStatus, .-nvmlDeviceGetRetiredPagesPendingStatus
	.globl nvmlDeviceGetRetiredPages_v2
	.hidden nvmlDeviceGetRetiredPages_v2
	.type nvmlDeviceGetRetiredPages_v2, %function
nvmlDeviceGetRetiredPages_v2:
	adrp x16, velocpy_nvml_table+1512
	ldr x16, [x16, :lo12:velocpy_nvml_table+1512]
	br x16
	.size nvmlDeviceGetRetiredPages_v2, .-nvmlDeviceGetRetiredPages_v2
	.globl nvmlDeviceGetRowRemapperHistogram
	.hidden nvmlDeviceGetRowRemapperHistogram
	.type nvmlDeviceGetRowRemapperHistogram, %function
nvmlDeviceGetRowRemapperHistogram:
	adrp x16, velocpy_nvml_table+1520
	ldr x16, [x16, :lo12:velocpy_nvml_table+1520]
	br x16
	.size nvmlDeviceGetRowRemapperHistogram, .-nvmlDeviceGetRowRemapperHistogram
	.globl nvmlDeviceGetRunningProcessDetailList
	.hidden nvmlDeviceGetRunningProcessDetailList
	.type nvmlDeviceGetRunningProcessDetailList, %function
nvmlDeviceGetRunningProcessDetailList:
	adrp x16, velocpy_nvml_table+1528
	ldr x16, [x16, :lo12:velocpy_nvml_table+1528]
	br x16
	.size nvmlDeviceGetRunningProcessDetailList, .-nvmlDeviceGetRunningProcessDetailList
	.globl nvmlDeviceGetSamples
	.hidden nvmlDeviceGetSamples
	.type nvmlDeviceGetSamples, %function
nvmlDeviceGetSamples:
	adrp x16, velocpy_nvml_table+1536
	ldr x16, [x16, :lo12:velocpy_nvml_table+1536]
	br x16
	.size nvmlDeviceGetSamples, .-nvmlDeviceGetSamples
	.globl nvmlDeviceGetSerial
	.hidden nvmlDeviceGetSerial
	.type nvmlDeviceGetSerial, %function
nvmlDeviceGetSerial:
	adrp x16, velocpy_nvml_table+1544
	ldr x16, [x16, :lo12:velocpy_nvml_table+1544]
	br x16
	.size nvmlDeviceGetSerial, .-nvmlDeviceGetSerial
	.globl nvmlDeviceGetSramEccErrorStatus
	.hidden nvmlDeviceGetSramEccErrorStatus
	.type nvmlDeviceGetSramEccErrorStatus, %function
nvmlDeviceGetSramEccErrorStatus:
	adrp x16, velocpy_nvml_table+1552
	ldr x16, [x16, :lo12:velocpy_nvml_table+1552]
	br x16
	.size nvmlDeviceGetSramEccErrorStatus, .-nvmlDeviceGetSramEccErrorStatus
	.globl nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts
	.hidden nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts
	.type nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts, %function
nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts:
	adrp x16, velocpy_nvml_table+1560
	ldr x16, [x16, :lo12:velocpy_nvml_table+1560]
	br x16
	.size nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts, .-nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts
	.globl nvmlDeviceGetSupportedClocksEventReasons
	.hidden nvmlDeviceGetSupportedClocksEventReasons
	.type nvmlDeviceGetSupportedClocksEventReasons, %function
nvmlDeviceGetSupportedClocksEventReasons:
	adrp x16, velocpy_nvml_table+1568
	ldr x16, [x16, :lo12:velocpy_nvml_table+1568]
	br x16
	.size nvmlDeviceGetSupportedClocksEventReasons, .-nvmlDeviceGetSupportedClocksEventReasons
	.globl nvmlDeviceGetSupportedClocksThrottleReasons
	.hidden nvmlDeviceGetSupportedClocksThrottleReasons
	.type nvmlDeviceGetSupportedClocksThrottleReasons, %function
nvmlDeviceGetSupportedClocksThrottleReasons:
	adrp x16, velocpy_nvml_table+1576
	ldr x16, [x16, :lo12:velocpy_nvml_table+1576]
	br x16
	.size nvmlDeviceGetSupportedClocksThrottleReasons, .-nvmlDeviceGetSupportedClocksThrottleReasons
	.globl nvmlDeviceGetSupportedEventTypes
	.hidden nvmlDeviceGetSupportedEventTypes
	.type nvmlDeviceGetSupportedEventTypes, %function
nvmlDeviceGetSupportedEventTypes:
	adrp x16, velocpy_nvml_table+1584
	ldr x16, [x16, :lo12:velocpy_nvml_table+1584]
	br x16
	.size nvmlDeviceGetSupportedEventTypes, .-nvmlDeviceGetSupportedEventTypes
	.globl nvmlDeviceGetSupportedGraphicsClocks
	.hidden nvmlDeviceGetSupportedGraphicsClocks
	.type nvmlDeviceGetSupportedGraphicsClocks, %function
nvmlDeviceGetSupportedGraphicsClocks:
	adrp x16, velocpy_nvml_table+1592
	ldr x16, [x16, :lo12:velocpy_nvml_table+1592]
	br x16
	.size nvmlDeviceGetSupportedGraphicsClocks, .-nvmlDeviceGetSupportedGraphicsClocks
	.globl nvmlDeviceGetSupportedMemoryClocks
	.hidden nvmlDeviceGetSupportedMemoryClocks
	.type nvmlDeviceGetSupportedMemoryClocks, %function
nvmlDeviceGetSupportedMemoryClocks:
	adrp x16, velocpy_nvml_table+1600
	ldr x16, [x16, :lo12:velocpy_nvml_table+1600]
	br x16
	.size nvmlDeviceGetSupportedMemoryClocks, .-nvmlDeviceGetSupportedMemoryClocks
	.globl nvmlDeviceGetSupportedPerformanceStates
	.hidden nvmlDeviceGetSupportedPerformanceStates
	.type nvmlDeviceGetSupportedPerformanceStates, %function
nvmlDeviceGetSupportedPerformanceStates:
	adrp x16, velocpy_nvml_table+1608
	ldr x16, [x16, :lo12:velocpy_nvml_table+1608]
	br x16
	.size nvmlDeviceGetSupportedPerformanceStates, .-nvmlDeviceGetSupportedPerformanceStates
	.globl nvmlDeviceGetSupportedVgpus
	.hidden nvmlDeviceGetSupportedVgpus
	.type nvmlDeviceGetSupportedVgpus, %function
nvmlDeviceGetSupportedVgpus:
	adrp x16, velocpy_nvml_table+1616
	ldr x16, [x16, :lo12:velocpy_nvml_table+1616]
	br x16
	.size nvmlDeviceGetSupportedVgpus, .-nvmlDeviceGetSupportedVgpus
	.globl nvmlDeviceGetTargetFanSpeed
	.hidden nvmlDeviceGetTargetFanSpeed
	.type nvmlDeviceGetTargetFanSpeed, %function
nvmlDeviceGetTargetFanSpeed:
	adrp x16, velocpy_nvml_table+1624
	ldr x16, [x16, :lo12:velocpy_nvml_table+1624]
	br x16
	.size nvmlDeviceGetTargetFanSpeed, .-nvmlDeviceGetTargetFanSpeed
	.globl nvmlDeviceGetTemperature
	.hidden nvmlDeviceGetTemperature
	.type nvmlDeviceGetTemperature, %function
nvmlDeviceGetTemperature:
	adrp x16, velocpy_nvml_table+1632
	ldr x16, [x16, :lo12:velocpy_nvml_table+1632]
	br x16
	.size nvmlDeviceGetTemperature, .-nvmlDeviceGetTemperature
	.globl nvmlDeviceGetTemperatureThreshold
	.hidden nvmlDeviceGetTemperatureThreshold
	.type nvmlDeviceGetTemperatureThreshold, %function
nvmlDeviceGetTemperatureThreshold:
	adrp x16, velocpy_nvml_table+1640
	ldr x16, [x16, :lo12:velocpy_nvml_table+1640]
	br x16
	.size nvmlDeviceGetTemperatureThreshold, .-nvmlDeviceGetTemperatureThreshold
	.globl nvmlDeviceGetTemperatureV
	.hidden nvmlDeviceGetTemperatureV
	.type nvmlDeviceGetTemperatureV, %function
nvmlDeviceGetTemperatureV:
	adrp x16, velocpy_nvml_table+1648
	ldr x16, [x16, :lo12:velocpy_nvml_table+1648]
	br x16
	.size nvmlDeviceGetTemperatureV, .-nvmlDeviceGetTemperatureV
	.globl nvmlDeviceGetThermalSettings
	.hidden nvmlDeviceGetThermalSettings
	.type nvmlDeviceGetThermalSettings, %function
nvmlDeviceGetThermalSettings:
	adrp x16, velocpy_nvml_table+1656
	ldr x16, [x16, :lo12:velocpy_nvml_table+1656]
	br x16
	.size nvmlDeviceGetThermalSettings, .-nvmlDeviceGetThermalSettings
	.globl nvmlDeviceGetTopologyCommonAncestor
	.hidden nvmlDeviceGetTopologyCommonAncestor
	.type nvmlDeviceGetTopologyCommonAncestor, %function
nvmlDeviceGetTopologyCommonAncestor:
	adrp x16, velocpy_nvml_table+1664
	ldr x16, [x16, :lo12:velocpy_nvml_table+1664]
	br x16
	.size nvmlDeviceGetTopologyCommonAncestor, .-nvmlDeviceGetTopologyCommonAncestor
	.globl nvmlDeviceGetTopologyNearestGpus
	.hidden nvmlDeviceGetTopologyNearestGpus
	.type nvmlDeviceGetTopologyNearestGpus, %function
nvmlDeviceGetTopologyNearestGpus:
	adrp x16, velocpy_nvml_table+1672
	ldr x16, [x16, :lo12:velocpy_nvml_table+1672]
	br x16
	.size nvmlDeviceGetTopologyNearestGpus, .-nvmlDeviceGetTopologyNearestGpus
	.globl nvmlDeviceGetTotalEccErrors
	.hidden nvmlDeviceGetTotalEccErrors
	.type nvmlDeviceGetTotalEccErrors, %function
nvmlDeviceGetTotalEccErrors:
	adrp x16, velocpy_nvml_table+1680
	ldr x16, [x16, :lo12:velocpy_nvml_table+1680]
	br x16
	.size nvmlDeviceGetTotalEccErrors, .-nvmlDeviceGetTotalEccErrors
	.globl nvmlDeviceGetTotalEnergyConsumption
	.hidden nvmlDeviceGetTotalEnergyConsumption
	.type nvmlDeviceGetTotalEnergyConsumption, %function
nvmlDeviceGetTotalEnergyConsumption:
	adrp x16, velocpy_nvml_table+1688
	ldr x16, [x16, :lo12:velocpy_nvml_table+1688]
	br x16
	.size nvmlDeviceGetTotalEnergyConsumption, .-nvmlDeviceGetTotalEnergyConsumption
	.globl nvmlDeviceGetUUID
	.hidden nvmlDeviceGetUUID
	.type nvmlDeviceGetUUID, %function
nvmlDeviceGetUUID:
	adrp x16, velocpy_nvml_table+1696
	ldr x16, [x16, :lo12:velocpy_nvml_table+1696]
	br x16
	.size nvmlDeviceGetUUID, .-nvmlDeviceGetUUID
	.globl nvmlDeviceGetUtilizationRates
	.hidden nvmlDeviceGetUtilizationRates
	.type nvmlDeviceGetUtilizationRates, %function
nvmlDeviceGetUtilizationRates:
	adrp x16, velocpy_nvml_table+1704
	ldr x16, [x16, :lo12:velocpy_nvml_table+1704]
	br x16
	.size nvmlDeviceGetUtilizationRates, .-nvmlDeviceGetUtilizationRates
	.globl nvmlDeviceGetVbiosVersion
	.hidden nvmlDeviceGetVbiosVersion
	.type nvmlDeviceGetVbiosVersion, %function
nvmlDeviceGetVbiosVersion:
	adrp x16, velocpy_nvml_table+1712
	ldr x16, [x16, :lo12:velocpy_nvml_table+1712]
	br x16
	.size nvmlDeviceGetVbiosVersion, .-nvmlDeviceGetVbiosVersion
	.globl nvmlDeviceGetVgpuCapabilities
	.hidden nvmlDeviceGetVgpuCapabilities
	.type nvmlDeviceGetVgpuCapabilities, %function
nvmlDeviceGetVgpuCapabilities:
	adrp x16, velocpy_nvml_table+1720
	ldr x16, [x16, :lo12:velocpy_nvml_table+1720]
	br x16
	.size nvmlDeviceGetVgpuCapabilities, .-nvmlDeviceGetVgpuCapabilities
	.globl nvmlDeviceGetVgpuHeterogeneousMode
	.hidden nvmlDeviceGetVgpuHeterogeneousMode
	.type nvmlDeviceGetVgpuHeterogeneousMode, %function
nvmlDeviceGetVgpuHeterogeneousMode:
	adrp x16, velocpy_nvml_table+1728
	ldr x16, [x16, :lo12:velocpy_nvml_table+1728]
	br x16
	.size nvmlDeviceGetVgpuHeterogeneousMode, .-nvmlDeviceGetVgpuHeterogeneousMode
	.globl nvmlDeviceGetVgpuInstancesUtilizationInfo
	.hidden nvmlDeviceGetVgpuInstancesUtilizationInfo
	.type nvmlDeviceGetVgpuInstancesUtilizationInfo, %function
nvmlDeviceGetVgpuInstancesUtilizationInfo:
	adrp x16, velocpy_nvml_table+1736
	ldr x16, [x16, :lo12:velocpy_nvml_table+1736]
	br x16
	.size nvmlDeviceGetVgpuInstancesUtilizationInfo, .-nvmlDeviceGetVgpuInstancesUtilizationInfo
	.globl nvmlDeviceGetVgpuMetadata
	.hidden nvmlDeviceGetVgpuMetadata
	.type nvmlDeviceGetVgpuMetadata, %function
nvmlDeviceGetVgpuMetadata:
	adrp x16, velocpy_nvml_table+1744
	ldr x16, [x16, :lo12:velocpy_nvml_table+1744]
	br x16
	.size nvmlDeviceGetVgpuMetadata, .-nvmlDeviceGetVgpuMetadata
	.globl nvmlDeviceGetVgpuProcessUtilization
	.hidden nvmlDeviceGetVgpuProcessUtilization
	.type nvmlDeviceGetVgpuProcessUtilization, %function
nvmlDeviceGetVgpuProcessUtilization:
	adrp x16, velocpy_nvml_table+1752
	ldr x16, [x16, :lo12:velocpy_nvml_table+1752]
	br x16
	.size nvmlDeviceGetVgpuProcessUtilization, .-nvmlDeviceGetVgpuProcessUtilization
	.globl nvmlDeviceGetVgpuProcessesUtilizationInfo
	.hidden nvmlDeviceGetVgpuProcessesUtilizationInfo
	.type nvmlDeviceGetVgpuProcessesUtilizationInfo, %function
nvmlDeviceGetVgpuProcessesUtilizationInfo:
	adrp x16, velocpy_nvml_table+1760
	ldr x16, [x16, :lo12:velocpy_nvml_table+1760]
	br x16
	.size nvmlDeviceGetVgpuProcessesUtilizationInfo, .-nvmlDeviceGetVgpuProcessesUtilizationInfo
	.globl nvmlDeviceGetVgpuSchedulerCapabilities
	.hidden nvmlDeviceGetVgpuSchedulerCapabilities
	.type nvmlDeviceGetVgpuSchedulerCapabilities, %function
nvmlDeviceGetVgpuSchedulerCapabilities:
	adrp x16, velocpy_nvml_table+1768
	ldr x16, [x16, :lo12:velocpy_nvml_table+1768]
	br x16
	.size nvmlDeviceGetVgpuSchedulerCapabilities, .-nvmlDeviceGetVgpuSchedulerCapabilities
	.globl nvmlDeviceGetVgpuSchedulerLog
	.hidden nvmlDeviceGetVgpuSchedulerLog
	.type nvmlDeviceGetVgpuSchedulerLog, %function
nvmlDeviceGetVgpuSchedulerLog:
	adrp x16, velocpy_nvml_table+1776
	ldr x16, [x16, :lo12:velocpy_nvml_table+1776]
	br x16
	.size nvmlDeviceGetVgpuSchedulerLog, .-nvmlDeviceGetVgpuSchedulerLog
	.globl nvmlDeviceGetVgpuSchedulerState
	.hidden nvmlDeviceGetVgpuSchedulerState
	.type nvmlDeviceGetVgpuSchedulerState, %function
nvmlDeviceGetVgpuSchedulerState:
	adrp x16, velocpy_nvml_table+1784
	ldr x16, [x16, :lo12:velocpy_nvml_table+1784]
	br x16
	.size nvmlDeviceGetVgpuSchedulerState, .-nvmlDeviceGetVgpuSchedulerState
	.globl nvmlDeviceGetVgpuTypeCreatablePlacements
	.hidden nvmlDeviceGetVgpuTypeCreatablePlacements
	.type nvmlDeviceGetVgpuTypeCreatablePlacements, %function
nvmlDeviceGetVgpuTypeCreatablePlacements:
	adrp x16, velocpy_nvml_table+1792
	ldr x16, [x16, :lo12:velocpy_nvml_table+1792]
	br x16
	.size nvmlDeviceGetVgpuTypeCreatablePlacements, .-nvmlDeviceGetVgpuTypeCreatablePlacements
	.globl nvmlDeviceGetVgpuTypeSupportedPlacements
	.hidden nvmlDeviceGetVgpuTypeSupportedPlacements
	.type nvmlDeviceGetVgpuTypeSupportedPlacements, %function
nvmlDeviceGetVgpuTypeSupportedPlacements:
	adrp x16, velocpy_nvml_table+1800
	ldr x16, [x16, :lo12:velocpy_nvml_table+1800]
	br x16
	.size nvmlDeviceGetVgpuTypeSupportedPlacements, .-nvmlDeviceGetVgpuTypeSupportedPlacements
	.globl nvmlDeviceGetVgpuUtilization
	.hidden nvmlDeviceGetVgpuUtilization
	.type nvmlDeviceGetVgpuUtilization, %function
nvmlDeviceGetVgpuUtilization:
	adrp x16, velocpy_nvml_table+1808
	ldr x16, [x16, :lo12:velocpy_nvml_table+1808]
	br x16
	.size nvmlDeviceGetVgpuUtilization, .-nvmlDeviceGetVgpuUtilization
	.globl nvmlDeviceGetViolationStatus
	.hidden nvmlDeviceGetViolationStatus
	.type nvmlDeviceGetViolationStatus, %function
nvmlDeviceGetViolationStatus:
	adrp x16, velocpy_nvml_table+1816
	ldr x16, [x16, :lo12:velocpy_nvml_table+1816]
	br x16
	.size nvmlDeviceGetViolationStatus, .-nvmlDeviceGetViolationStatus
	.globl nvmlDeviceGetVirtualizationMode
	.hidden nvmlDeviceGetVirtualizationMode
	.type nvmlDeviceGetVirtualizationMode, %function
nvmlDeviceGetVirtualizationMode:
	adrp x16, velocpy_nvml_table+1824
	ldr x16, [x16, :lo12:velocpy_nvml_table+1824]
	br x16
	.size nvmlDeviceGetVirtualizationMode, .-nvmlDeviceGetVirtualizationMode
	.globl nvmlDeviceIsMigDeviceHandle
	.hidden nvmlDeviceIsMigDeviceHandle
	.type nvmlDeviceIsMigDeviceHandle, %function
nvmlDeviceIsMigDeviceHandle:
	adrp x16, velocpy_nvml_table+1832
	ldr x16, [x16, :lo12:velocpy_nvml_table+1832]
	br x16
	.size nvmlDeviceIsMigDeviceHandle, .-nvmlDeviceIsMigDeviceHandle
	.globl nvmlDeviceModifyDrainState
	.hidden nvmlDeviceModifyDrainState
	.type nvmlDeviceModifyDrainState, %function
nvmlDeviceModifyDrainState:
	adrp x16, velocpy_nvml_table+1840
	ldr x16, [x16, :lo12:velocpy_nvml_table+1840]
	br x16
	.size nvmlDeviceModifyDrainState, .-nvmlDeviceModifyDrainState
	.globl nvmlDeviceOnSameBoard
	.hidden nvmlDeviceOnSameBoard
	.type nvmlDeviceOnSameBoard, %function
nvmlDeviceOnSameBoard:
	adrp x16, velocpy_nvml_table+1848
	ldr x16, [x16, :lo12:velocpy_nvml_table+1848]
	br x16
	.size nvmlDeviceOnSameBoard, .-nvmlDeviceOnSameBoard
	.globl nvmlDevicePowerSmoothingActivatePresetProfile
	.hidden nvmlDevicePowerSmoothingActivatePresetProfile
	.type nvmlDevicePowerSmoothingActivatePresetProfile, %function
nvmlDevicePowerSmoothingActivatePresetProfile:
	adrp x16, velocpy_nvml_table+1856
	ldr x16, [x16, :lo12:velocpy_nvml_table+1856]
	br x16
	.size nvmlDevicePowerSmoothingActivatePresetProfile, .-nvmlDevicePowerSmoothingActivatePresetProfile
	.globl nvmlDevicePowerSmoothingSetState
	.hidden nvmlDevicePowerSmoothingSetState
	.type nvmlDevicePowerSmoothingSetState, %function
nvmlDevicePowerSmoothingSetState:
	adrp x16, velocpy_nvml_table+1864
	ldr x16, [x16, :lo12:velocpy_nvml_table+1864]
	br x16
	.size nvmlDevicePowerSmoothingSetState, .-nvmlDevicePowerSmoothingSetState
	.globl nvmlDevicePowerSmoothingUpdatePresetProfileParam
	.hidden nvmlDevicePowerSmoothingUpdatePresetProfileParam
	.type nvmlDevicePowerSmoothingUpdatePresetProfileParam, %function
nvmlDevicePowerSmoothingUpdatePresetProfileParam:
	adrp x16, velocpy_nvml_table+1872
	ldr x16, [x16, :lo12:velocpy_nvml_table+1872]
	br x16
	.size nvmlDevicePowerSmoothingUpdatePresetProfileParam, .-nvmlDevicePowerSmoothingUpdatePresetProfileParam
	.globl nvmlDeviceQueryDrainState
	.hidden nvmlDeviceQueryDrainState
	.type nvmlDeviceQueryDrainState, %function
nvmlDeviceQueryDrainState:
	adrp x16, velocpy_nvml_table+1880
	ldr x16, [x16, :lo12:velocpy_nvml_table+1880]
	br x16
	.size nvmlDeviceQueryDrainState, .-nvmlDeviceQueryDrainState
	.globl nvmlDeviceReadWritePRM_v1
	.hidden nvmlDeviceReadWritePRM_v1
	.type nvmlDeviceReadWritePRM_v1, %function
nvmlDeviceReadWritePRM_v1:
	adrp x16, velocpy_nvml_table+1888
	ldr x16, [x16, :lo12:velocpy_nvml_table+1888]
	br x16
	.size nvmlDeviceReadWritePRM_v1, .-nvmlDeviceReadWritePRM_v1
	.globl nvmlDeviceRegisterEvents
	.hidden nvmlDeviceRegisterEvents
	.type nvmlDeviceRegisterEvents, %function
nvmlDeviceRegisterEvents:
	adrp x16, velocpy_nvml_table+1896
	ldr x16, [x16, :lo12:velocpy_nvml_table+1896]
	br x16
	.size nvmlDeviceRegisterEvents, .-nvmlDeviceRegisterEvents
	.globl nvmlDeviceRemoveGpu
	.hidden nvmlDeviceRemoveGpu
	.type nvmlDeviceRemoveGpu, %function
nvmlDeviceRemoveGpu:
	adrp x16, velocpy_nvml_table+1904
	ldr x16, [x16, :lo12:velocpy_nvml_table+1904]
	br x16
	.size nvmlDeviceRemoveGpu, .-nvmlDeviceRemoveGpu
	.globl nvmlDeviceRemoveGpu_v2
	.hidden nvmlDeviceRemoveGpu_v2
	.type nvmlDeviceRemoveGpu_v2, %function
nvmlDeviceRemoveGpu_v2:
	adrp x16, velocpy_nvml_table+1912
	ldr x16, [x16, :lo12:velocpy_nvml_table+1912]
	br x16
	.size nvmlDeviceRemoveGpu_v2, .-nvmlDeviceRemoveGpu_v2
	.globl nvmlDeviceResetApplicationsClocks
	.hidden nvmlDeviceResetApplicationsClocks
	.type nvmlDeviceResetApplicationsClocks, %function
nvmlDeviceResetApplicationsClocks:
	adrp x16, velocpy_nvml_table+1920
	ldr x16, [x16, :lo12:velocpy_nvml_table+1920]
	br x16
	.size nvmlDeviceResetApplicationsClocks, .-nvmlDeviceResetApplicationsClocks
	.globl nvmlDeviceResetGpuLockedClocks
	.hidden nvmlDeviceResetGpuLockedClocks
	.type nvmlDeviceResetGpuLockedClocks, %function
nvmlDeviceResetGpuLockedClocks:
	adrp x16, velocpy_nvml_table+1928
	ldr x16, [x16, :lo12:velocpy_nvml_table+1928]
	br x16
	.size nvmlDeviceResetGpuLockedClocks, .-nvmlDeviceResetGpuLockedClocks
	.globl nvmlDeviceResetMemoryLockedClocks
	.hidden nvmlDeviceResetMemoryLockedClocks
	.type nvmlDeviceResetMemoryLockedClocks, %function
nvmlDeviceResetMemoryLockedClocks:
	adrp x16, velocpy_nvml_table+1936
	ldr x16, [x16, :lo12:velocpy_nvml_table+1936]
	br x16
	.size nvmlDeviceResetMemoryLockedClocks, .-nvmlDeviceResetMemoryLockedClocks
	.globl nvmlDeviceResetNvLinkErrorCounters
	.hidden nvmlDeviceResetNvLinkErrorCounters
	.type nvmlDeviceResetNvLinkErrorCounters, %function
nvmlDeviceResetNvLinkErrorCounters:
	adrp x16, velocpy_nvml_table+1944
	ldr x16, [x16, :lo12:velocpy_nvml_table+1944]
	br x16
	.size nvmlDeviceResetNvLinkErrorCounters, .-nvmlDeviceResetNvLinkErrorCounters
	.globl nvmlDeviceResetNvLinkUtilizationCounter
	.hidden nvmlDeviceResetNvLinkUtilizationCounter
	.type nvmlDeviceResetNvLinkUtilizationCounter, %function
nvmlDeviceResetNvLinkUtilizationCounter:
	adrp x16, velocpy_nvml_table+1952
	ldr x16, [x16, :lo12:velocpy_nvml_table+1952]
	br x16
	.size nvmlDeviceResetNvLinkUtilizationCounter, .-nvmlDeviceResetNvLinkUtilizationCounter
	.globl nvmlDeviceSetAPIRestriction
	.hidden nvmlDeviceSetAPIRestriction
	.type nvmlDeviceSetAPIRestriction, %function
nvmlDeviceSetAPIRestriction:
	adrp x16, velocpy_nvml_table+1960
	ldr x16, [x16, :lo12:velocpy_nvml_table+1960]
	br x16
	.size nvmlDeviceSetAPIRestriction, .-nvmlDeviceSetAPIRestriction
	.globl nvmlDeviceSetAccountingMode
	.hidden nvmlDeviceSetAccountingMode
	.type nvmlDeviceSetAccountingMode, %function
nvmlDeviceSetAccountingMode:
	adrp x16, velocpy_nvml_table+1968
	ldr x16, [x16, :lo12:velocpy_nvml_table+1968]
	br x16
	.size nvmlDeviceSetAccountingMode, .-nvmlDeviceSetAccountingMode
	.globl nvmlDeviceSetApplicationsClocks
	.hidden nvmlDeviceSetApplicationsClocks
	.type nvmlDeviceSetApplicationsClocks, %function
nvmlDeviceSetApplicationsClocks:
	adrp x16, velocpy_nvml_table+1976
	ldr x16, [x16, :lo12:velocpy_nvml_table+1976]
	br x16
	.size nvmlDeviceSetApplicationsClocks, .-nvmlDeviceSetApplicationsClocks
	.globl nvmlDeviceSetAutoBoostedClocksEnabled
	.hidden nvmlDeviceSetAutoBoostedClocksEnabled
	.type nvmlDeviceSetAutoBoostedClocksEnabled, %function
nvmlDeviceSetAutoBoostedClocksEnabled:
	adrp x16, velocpy_nvml_table+1984
	ldr x16, [x16, :lo12:velocpy_nvml_table+1984]
	br x16
	.size nvmlDeviceSetAutoBoostedClocksEnabled, .-nvmlDeviceSetAutoBoostedClocksEnabled
	.globl nvmlDeviceSetClockOffsets
	.hidden nvmlDeviceSetClockOffsets
	.type nvmlDeviceSetClockOffsets, %function
nvmlDeviceSetClockOffsets:
	adrp x16, velocpy_nvml_table+1992
	ldr x16, [x16, :lo12:velocpy_nvml_table+1992]
	br x16
	.size nvmlDeviceSetClockOffsets, .-nvmlDeviceSetClockOffsets
	.globl nvmlDeviceSetComputeMode
	.hidden nvmlDeviceSetComputeMode
	.type nvmlDeviceSetComputeMode, %function
nvmlDeviceSetComputeMode:
	adrp x16, velocpy_nvml_table+2000
	ldr x16, [x16, :lo12:velocpy_nvml_table+2000]
	br x16
	.size nvmlDeviceSetComputeMode, .-nvmlDeviceSetComputeMode
	.globl nvmlDeviceSetConfComputeUnprotectedMemSize
	.hidden nvmlDeviceSetConfComputeUnprotectedMemSize
	.type nvmlDeviceSetConfComputeUnprotectedMemSize, %function
nvmlDeviceSetConfComputeUnprotectedMemSize:
	adrp x16, velocpy_nvml_table+2008
	ldr x16, [x16, :lo12:velocpy_nvml_table+2008]
	br x16
	.size nvmlDeviceSetConfComputeUnprotectedMemSize, .-nvmlDeviceSetConfComputeUnprotectedMemSize
	.globl nvmlDeviceSetCpuAffinity
	.hidden nvmlDeviceSetCpuAffinity
	.type nvmlDeviceSetCpuAffinity, %function
nvmlDeviceSetCpuAffinity:
	adrp x16, velocpy_nvml_table+2016
	ldr x16, [x16, :lo12:velocpy_nvml_table+2016]
	br x16
	.size nvmlDeviceSetCpuAffinity, .-nvmlDeviceSetCpuAffinity
	.globl nvmlDeviceSetDefaultAutoBoostedClocksEnabled
	.hidden nvmlDeviceSetDefaultAutoBoostedClocksEnabled
	.type nvmlDeviceSetDefaultAutoBoostedClocksEnabled, %function
nvmlDeviceSetDefaultAutoBoostedClocksEnabled:
	adrp x16, velocpy_nvml_table+2024
	ldr x16, [x16, :lo12:velocpy_nvml_table+2024]
	br x16
	.size nvmlDeviceSetDefaultAutoBoostedClocksEnabled, .-nvmlDeviceSetDefaultAutoBoostedClocksEnabled
	.globl nvmlDeviceSetDefaultFanSpeed_v2
	.hidden nvmlDeviceSetDefaultFanSpeed_v2
	.type nvmlDeviceSetDefaultFanSpeed_v2, %function
nvmlDeviceSetDefaultFanSpeed_v2:
	adrp x16, velocpy_nvml_table+2032
	ldr x16, [x16, :lo12:velocpy_nvml_table+2032]
	br x16
	.size nvmlDeviceSetDefaultFanSpeed_v2, .-nvmlDeviceSetDefaultFanSpeed_v2
	.globl nvmlDeviceSetDramEncryptionMode
	.hidden nvmlDeviceSetDramEncryptionMode
	.type nvmlDeviceSetDramEncryptionMode, %function
nvmlDeviceSetDramEncryptionMode:
	adrp x16, velocpy_nvml_table+2040
	ldr x16, [x16, :lo12:velocpy_nvml_table+2040]
	br x16
	.size nvmlDeviceSetDramEncryptionMode, .-nvmlDeviceSetDramEncryptionMode
	.globl nvmlDeviceSetDriverModel
	.hidden nvmlDeviceSetDriverModel
	.type nvmlDeviceSetDriverModel, %function
nvmlDeviceSetDriverModel:
	adrp x16, velocpy_nvml_table+2048
	ldr x16, [x16, :lo12:velocpy_nvml_table+2048]
	br x16
	.size nvmlDeviceSetDriverModel, .-nvmlDeviceSetDriverModel
	.globl nvmlDeviceSetEccMode
	.hidden nvmlDeviceSetEccMode
	.type nvmlDeviceSetEccMode, %function
nvmlDeviceSetEccMode:
	adrp x16, velocpy_nvml_table+2056
	ldr x16, [x16, :lo12:velocpy_nvml_table+2056]
	br x16
	.size nvmlDeviceSetEccMode, .-nvmlDeviceSetEccMode
	.globl nvmlDeviceSetFanControlPolicy
	.hidden nvmlDeviceSetFanControlPolicy
	.type nvmlDeviceSetFanControlPolicy, %function
nvmlDeviceSetFanControlPolicy:
	adrp x16, velocpy_nvml_table+2064
	ldr x16, [x16, :lo12:velocpy_nvml_table+2064]
	br x16
	.size nvmlDeviceSetFanControlPolicy, .-nvmlDeviceSetFanControlPolicy
	.globl nvmlDeviceSetFanSpeed_v2
	.hidden nvmlDeviceSetFanSpeed_v2
	.type nvmlDeviceSetFanSpeed_v2, %function
nvmlDeviceSetFanSpeed_v2:
	adrp x16, velocpy_nvml_table+2072
	ldr x16, [x16, :lo12:velocpy_nvml_table+2072]
	br x16
	.size nvmlDeviceSetFanSpeed_v2, .-nvmlDeviceSetFanSpeed_v2
	.globl nvmlDeviceSetGpcClkVfOffset
	.hidden nvmlDeviceSetGpcClkVfOffset
	.type nvmlDeviceSetGpcClkVfOffset, %function
nvmlDeviceSetGpcClkVfOffset:
	adrp x16, velocpy_nvml_table+2080
	ldr x16, [x16, :lo12:velocpy_nvml_table+2080]
	br x16
	.size nvmlDeviceSetGpcClkVfOffset, .-nvmlDeviceSetGpcClkVfOffset
	.globl nvmlDeviceSetGpuLockedClocks
	.hidden nvmlDeviceSetGpuLockedClocks
	.type nvmlDeviceSetGpuLockedClocks, %function
nvmlDeviceSetGpuLockedClocks:
	adrp x16, velocpy_nvml_table+2088
	ldr x16, [x16, :lo12:velocpy_nvml_table+2088]
	br x16
	.size nvmlDeviceSetGpuLockedClocks, .-nvmlDeviceSetGpuLockedClocks
	.globl nvmlDeviceSetGpuOperationMode
	.hidden nvmlDeviceSetGpuOperationMode
	.type nvmlDeviceSetGpuOperationMode, %function
nvmlDeviceSetGpuOperationMode:
	adrp x16, velocpy_nvml_table+2096
	ldr x16, [x16, :lo12:velocpy_nvml_table+2096]
	br x16
	.size nvmlDeviceSetGpuOperationMode, .-nvmlDeviceSetGpuOperationMode
	.globl nvmlDeviceSetMemClkVfOffset
	.hidden nvmlDeviceSetMemClkVfOffset
	.type nvmlDeviceSetMemClkVfOffset, %function
nvmlDeviceSetMemClkVfOffset:
	adrp x16, velocpy_nvml_table+2104
	ldr x16, [x16, :lo12:velocpy_nvml_table+2104]
	br x16
	.size nvmlDeviceSetMemClkVfOffset, .-nvmlDeviceSetMemClkVfOffset
	.globl nvmlDeviceSetMemoryLockedClocks
	.hidden nvmlDeviceSetMemoryLockedClocks
	.type nvmlDeviceSetMemoryLockedClocks, %function
nvmlDeviceSetMemoryLockedClocks:
	adrp x16, velocpy_nvml_table+2112
	ldr x16, [x16, :lo12:velocpy_nvml_table+2112]
	br x16
	.size nvmlDeviceSetMemoryLockedClocks, .-nvmlDeviceSetMemoryLockedClocks
	.globl nvmlDeviceSetMigMode
	.hidden nvmlDeviceSetMigMode
	.type nvmlDeviceSetMigMode, %function
nvmlDeviceSetMigMode:
	adrp x16, velocpy_nvml_table+2120
	ldr x16, [x16, :lo12:velocpy_nvml_table+2120]
	br x16
	.size nvmlDeviceSetMigMode, .-nvmlDeviceSetMigMode
	.globl nvmlDeviceSetNvLinkDeviceLowPowerThreshold
	.hidden nvmlDeviceSetNvLinkDeviceLowPowerThreshold
	.type nvmlDeviceSetNvLinkDeviceLowPowerThreshold, %function
nvmlDeviceSetNvLinkDeviceLowPowerThreshold:
	adrp x16, velocpy_nvml_table+2128
	ldr x16, [x16, :lo12:velocpy_nvml_table+2128]
	br x16
	.size nvmlDeviceSetNvLinkDeviceLowPowerThreshold, .-nvmlDeviceSetNvLinkDeviceLowPowerThreshold
	.globl nvmlDeviceSetNvLinkUtilizationControl
	.hidden nvmlDeviceSetNvLinkUtilizationControl
	.type nvmlDeviceSetNvLinkUtilizationControl, %function
nvmlDeviceSetNvLinkUtilizationControl:
	adrp x16, velocpy_nvml_table+2136
	ldr x16, [x16, :lo12:velocpy_nvml_table+2136]
	br x16
	.size nvmlDeviceSetNvLinkUtilizationControl, .-nvmlDeviceSetNvLinkUtilizationControl
	.globl nvmlDeviceSetNvlinkBwMode
	.hidden nvmlDeviceSetNvlinkBwMode
	.type nvmlDeviceSetNvlinkBwMode, %function
nvmlDeviceSetNvlinkBwMode:
	adrp x16, velocpy_nvml_table+2144
	ldr x16, [x16, :lo12:velocpy_nvml_table+2144]
	br x16
	.size nvmlDeviceSetNvlinkBwMode, .-nvmlDeviceSetNvlinkBwMode
	.globl nvmlDeviceSetPersistenceMode
	.hidden nvmlDeviceSetPersistenceMode
	.type nvmlDeviceSetPersistenceMode, %function
nvmlDeviceSetPersistenceMode:
	adrp x16, velocpy_nvml_table+2152
	ldr x16, [x16, :lo12:velocpy_nvml_table+2152]
	br x16
	.size nvmlDeviceSetPersistenceMode, .-nvmlDeviceSetPersistenceMode
	.globl nvmlDeviceSetPowerManagementLimit
	.hidden nvmlDeviceSetPowerManagementLimit
	.type nvmlDeviceSetPowerManagementLimit, %function
nvmlDeviceSetPowerManagementLimit:
	adrp x16, velocpy_nvml_table+2160
	ldr x16, [x16, :lo12:velocpy_nvml_table+2160]
	br x16
	.size nvmlDeviceSetPowerManagementLimit, .-nvmlDeviceSetPowerManagementLimit
	.globl nvmlDeviceSetPowerManagementLimit_v2
	.hidden nvmlDeviceSetPowerManagementLimit_v2
	.type nvmlDeviceSetPowerManagementLimit_v2, %function
nvmlDeviceSetPowerManagementLimit_v2:
	adrp x16, velocpy_nvml_table+2168
	ldr x16, [x16, :lo12:velocpy_nvml_table+2168]
	br x16
	.size nvmlDeviceSetPowerManagementLimit_v2, .-nvmlDeviceSetPowerManagementLimit_v2
	.globl nvmlDeviceSetPowerMizerMode_v1
	.hidden nvmlDeviceSetPowerMizerMode_v1
	.type nvmlDeviceSetPowerMizerMode_v1, %function
nvmlDeviceSetPowerMizerMode_v1:
	adrp x16, velocpy_nvml_table+2176
	ldr x16, [x16, :lo12:velocpy_nvml_table+2176]
	br x16
	.size nvmlDeviceSetPowerMizerMode_v1, .-nvmlDeviceSetPowerMizerMode_v1
	.globl nvmlDeviceSetTemperatureThreshold
	.hidden nvmlDeviceSetTemperatureThreshold
	.type nvmlDeviceSetTemperatureThreshold, %function
nvmlDeviceSetTemperatureThreshold:
	adrp x16, velocpy_nvml_table+2184
	ldr x16, [x16, :lo12:velocpy_nvml_table+2184]
	br x16
	.size nvmlDeviceSetTemperatureThreshold, .-nvmlDeviceSetTemperatureThreshold
	.globl nvmlDeviceSetVgpuCapabilities
	.hidden nvmlDeviceSetVgpuCapabilities
	.type nvmlDeviceSetVgpuCapabilities, %function
nvmlDeviceSetVgpuCapabilities:
	adrp x16, velocpy_nvml_table+2192
	ldr x16, [x16, :lo12:velocpy_nvml_table+2192]
	br x16
	.size nvmlDeviceSetVgpuCapabilities, .-nvmlDeviceSetVgpuCapabilities
	.globl nvmlDeviceSetVgpuHeterogeneousMode
	.hidden nvmlDeviceSetVgpuHeterogeneousMode
	.type nvmlDeviceSetVgpuHeterogeneousMode, %function
nvmlDeviceSetVgpuHeterogeneousMode:
	adrp x16, velocpy_nvml_table+2200
	ldr x16, [x16, :lo12:velocpy_nvml_table+2200]
	br x16
	.size nvmlDeviceSetVgpuHeterogeneousMode, .-nvmlDeviceSetVgpuHeterogeneousMode
	.globl nvmlDeviceSetVgpuSchedulerState
	.hidden nvmlDeviceSetVgpuSchedulerState
	.type nvmlDeviceSetVgpuSchedulerState, %function
nvmlDeviceSetVgpuSchedulerState:
	adrp x16, velocpy_nvml_table+2208
	ldr x16, [x16, :lo12:velocpy_nvml_table+2208]
	br x16
	.size nvmlDeviceSetVgpuSchedulerState, .-nvmlDeviceSetVgpuSchedulerState
	.globl nvmlDeviceSetVirtualizationMode
	.hidden nvmlDeviceSetVirtualizationMode
	.type nvmlDeviceSetVirtualizationMode, %function
nvmlDeviceSetVirtualizationMode:
	adrp x16, velocpy_nvml_table+2216
	ldr x16, [x16, :lo12:velocpy_nvml_table+2216]
	br x16
	.size nvmlDeviceSetVirtualizationMode, .-nvmlDeviceSetVirtualizationMode
	.globl nvmlDeviceValidateInforom
	.hidden nvmlDeviceValidateInforom
	.type nvmlDeviceValidateInforom, %function
nvmlDeviceValidateInforom:
	adrp x16, velocpy_nvml_table+2224
	ldr x16, [x16, :lo12:velocpy_nvml_table+2224]
	br x16
	.size nvmlDeviceValidateInforom, .-nvmlDeviceValidateInforom
	.globl nvmlDeviceWorkloadPowerProfileClearRequestedProfiles
	.hidden nvmlDeviceWorkloadPowerProfileClearRequestedProfiles
	.type nvmlDeviceWorkloadPowerProfileClearRequestedProfiles, %function
nvmlDeviceWorkloadPowerProfileClearRequestedProfiles:
	adrp x16, velocpy_nvml_table+2232
	ldr x16, [x16, :lo12:velocpy_nvml_table+2232]
	br x16
	.size nvmlDeviceWorkloadPowerProfileClearRequestedProfiles, .-nvmlDeviceWorkloadPowerProfileClearRequestedProfiles
	.globl nvmlDeviceWorkloadPowerProfileGetCurrentProfiles
	.hidden nvmlDeviceWorkloadPowerProfileGetCurrentProfiles
	.type nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, %function
nvmlDeviceWorkloadPowerProfileGetCurrentProfiles:
	adrp x16, velocpy_nvml_table+2240
	ldr x16, [x16, :lo12:velocpy_nvml_table+2240]
	br x16
	.size nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, .-nvmlDeviceWorkloadPowerProfileGetCurrentProfiles
	.globl nvmlDeviceWorkloadPowerProfileGetProfilesInfo
	.hidden nvmlDeviceWorkloadPowerProfileGetProfilesInfo
	.type nvmlDeviceWorkloadPowerProfileGetProfilesInfo, %function
nvmlDeviceWorkloadPowerProfileGetProfilesInfo:
	adrp x16, velocpy_nvml_table+2248
	ldr x16, [x16, :lo12:velocpy_nvml_table+2248]
	br x16
	.size nvmlDeviceWorkloadPowerProfileGetProfilesInfo, .-nvmlDeviceWorkloadPowerProfileGetProfilesInfo
	.globl nvmlDeviceWorkloadPowerProfileSetRequestedProfiles
	.hidden nvmlDeviceWorkloadPowerProfileSetRequestedProfiles
	.type nvmlDeviceWorkloadPowerProfileSetRequestedProfiles, %function
nvmlDeviceWorkloadPowerProfileSetRequestedProfiles:
	adrp x16, velocpy_nvml_table+2256
	ldr x16, [x16, :lo12:velocpy_nvml_table+2256]
	br x16
	.size nvmlDeviceWorkloadPowerProfileSetRequestedProfiles, .-nvmlDeviceWorkloadPowerProfileSetRequestedProfiles
	.globl nvmlErrorString
	.hidden nvmlErrorString
	.type nvmlErrorString, %function
nvmlErrorString:
	adrp x16, velocpy_nvml_table+2264
	ldr x16, [x16, :lo12:velocpy_nvml_table+2264]
	br x16
	.size nvmlErrorString, .-nvmlErrorString
	.globl nvmlEventSetCreate
	.hidden nvmlEventSetCreate
	.type nvmlEventSetCreate, %function
nvmlEventSetCreate:
	adrp x16, velocpy_nvml_table+2272
	ldr x16, [x16, :lo12:velocpy_nvml_table+2272]
	br x16
	.size nvmlEventSetCreate, .-nvmlEventSetCreate
	.globl nvmlEventSetFree
	.hidden nvmlEventSetFree
	.type nvmlEventSetFree, %function
nvmlEventSetFree:
	adrp x16, velocpy_nvml_table+2280
	ldr x16, [x16, :lo12:velocpy_nvml_table+2280]
	br x16
	.size nvmlEventSetFree, .-nvmlEventSetFree
	.globl nvmlEventSetWait
	.hidden nvmlEventSetWait
	.type nvmlEventSetWait, %function
nvmlEventSetWait:
	adrp x16, velocpy_nvml_table+2288
	ldr x16, [x16, :lo12:velocpy_nvml_table+2288]
	br x16
	.size nvmlEventSetWait, .-nvmlEventSetWait
	.globl nvmlEventSetWait_v2
	.hidden nvmlEventSetWait_v2
	.type nvmlEventSetWait_v2, %function
nvmlEventSetWait_v2:
	adrp x16, velocpy_nvml_table+2296
	ldr x16, [x16, :lo12:velocpy_nvml_table+2296]
	br x16
	.size nvmlEventSetWait_v2, .-nvmlEventSetWait_v2
	.globl nvmlGetExcludedDeviceCount
	.hidden nvmlGetExcludedDeviceCount
	.type nvmlGetExcludedDeviceCount, %function
nvmlGetExcludedDeviceCount:
	adrp x16, velocpy_nvml_table+2304
	ldr x16, [x16, :lo12:velocpy_nvml_table+2304]
	br x16
	.size nvmlGetExcludedDeviceCount, .-nvmlGetExcludedDeviceCount
	.globl nvmlGetExcludedDeviceInfoByIndex
	.hidden nvmlGetExcludedDeviceInfoByIndex
	.type nvmlGetExcludedDeviceInfoByIndex, %function
nvmlGetExcludedDeviceInfoByIndex:
	adrp x16, velocpy_nvml_table+2312
	ldr x16, [x16, :lo12:velocpy_nvml_table+2312]
	br x16
	.size nvmlGetExcludedDeviceInfoByIndex, .-nvmlGetExcludedDeviceInfoByIndex
	.globl nvmlGetVgpuCompatibility
	.hidden nvmlGetVgpuCompatibility
	.type nvmlGetVgpuCompatibility, %function
nvmlGetVgpuCompatibility:
	adrp x16, velocpy_nvml_table+2320
	ldr x16, [x16, :lo12:velocpy_nvml_table+2320]
	br x16
	.size nvmlGetVgpuCompatibility, .-nvmlGetVgpuCompatibility
	.globl nvmlGetVgpuDriverCapabilities
	.hidden nvmlGetVgpuDriverCapabilities
	.type nvmlGetVgpuDriverCapabilities, %function
nvmlGetVgpuDriverCapabilities:
	adrp x16, velocpy_nvml_table+2328
	ldr x16, [x16, :lo12:velocpy_nvml_table+2328]
	br x16
	.size nvmlGetVgpuDriverCapabilities, .-nvmlGetVgpuDriverCapabilities
	.globl nvmlGetVgpuVersion
	.hidden nvmlGetVgpuVersion
	.type nvmlGetVgpuVersion, %function
nvmlGetVgpuVersion:
	adrp x16, velocpy_nvml_table+2336
	ldr x16, [x16, :lo12:velocpy_nvml_table+2336]
	br x16
	.size nvmlGetVgpuVersion, .-nvmlGetVgpuVersion
	.globl nvmlGpmMetricsGet
	.hidden nvmlGpmMetricsGet
	.type nvmlGpmMetricsGet, %function
nvmlGpmMetricsGet:
	adrp x16, velocpy_nvml_table+2344
	ldr x16, [x16, :lo12:velocpy_nvml_table+2344]
	br x16
	.size nvmlGpmMetricsGet, .-nvmlGpmMetricsGet
	.globl nvmlGpmMigSampleGet
	.hidden nvmlGpmMigSampleGet
	.type nvmlGpmMigSampleGet, %function
nvmlGpmMigSampleGet:
	adrp x16, velocpy_nvml_table+2352
	ldr x16, [x16, :lo12:velocpy_nvml_table+2352]
	br x16
	.size nvmlGpmMigSampleGet, .-nvmlGpmMigSampleGet
	.globl nvmlGpmQueryDeviceSupport
	.hidden nvmlGpmQueryDeviceSupport
	.type nvmlGpmQueryDeviceSupport, %function
nvmlGpmQueryDeviceSupport:
	adrp x16, velocpy_nvml_table+2360
	ldr x16, [x16, :lo12:velocpy_nvml_table+2360]
	br x16
	.size nvmlGpmQueryDeviceSupport, .-nvmlGpmQueryDeviceSupport
	.globl nvmlGpmQueryIfStreamingEnabled
	.hidden nvmlGpmQueryIfStreamingEnabled
	.type nvmlGpmQueryIfStreamingEnabled, %function
nvmlGpmQueryIfStreamingEnabled:
	adrp x16, velocpy_nvml_table+2368
	ldr x16, [x16, :lo12:velocpy_nvml_table+2368]
	br x16
	.size nvmlGpmQueryIfStreamingEnabled, .-nvmlGpmQueryIfStreamingEnabled
	.globl nvmlGpmSampleAlloc
	.hidden nvmlGpmSampleAlloc
	.type nvmlGpmSampleAlloc, %function
nvmlGpmSampleAlloc:
	adrp x16, velocpy_nvml_table+2376
	ldr x16, [x16, :lo12:velocpy_nvml_table+2376]
	br x16
	.size nvmlGpmSampleAlloc, .-nvmlGpmSampleAlloc
	.globl nvmlGpmSampleFree
	.hidden nvmlGpmSampleFree
	.type nvmlGpmSampleFree, %function
nvmlGpmSampleFree:
	adrp x16, velocpy_nvml_table+2384
	ldr x16, [x16, :lo12:velocpy_nvml_table+2384]
	br x16
	.size nvmlGpmSampleFree, .-nvmlGpmSampleFree
	.globl nvmlGpmSampleGet
	.hidden nvmlGpmSampleGet
	.type nvmlGpmSampleGet, %function
nvmlGpmSampleGet:
	adrp x16, velocpy_nvml_table+2392
	ldr x16, [x16, :lo12:velocpy_nvml_table+2392]
	br x16
	.size nvmlGpmSampleGet, .-nvmlGpmSampleGet
	.globl nvmlGpmSetStreamingEnabled
	.hidden nvmlGpmSetStreamingEnabled
	.type nvmlGpmSetStreamingEnabled, %function
nvmlGpmSetStreamingEnabled:
	adrp x16, velocpy_nvml_table+2400
	ldr x16, [x16, :lo12:velocpy_nvml_table+2400]
	br x16
	.size nvmlGpmSetStreamingEnabled, .-nvmlGpmSetStreamingEnabled
	.globl nvmlGpuInstanceCreateComputeInstance
	.hidden nvmlGpuInstanceCreateComputeInstance
	.type nvmlGpuInstanceCreateComputeInstance, %function
nvmlGpuInstanceCreateComputeInstance:
	adrp x16, velocpy_nvml_table+2408
	ldr x16, [x16, :lo12:velocpy_nvml_table+2408]
	br x16
	.size nvmlGpuInstanceCreateComputeInstance, .-nvmlGpuInstanceCreateComputeInstance
	.globl nvmlGpuInstanceCreateComputeInstanceWithPlacement
	.hidden nvmlGpuInstanceCreateComputeInstanceWithPlacement
	.type nvmlGpuInstanceCreateComputeInstanceWithPlacement, %function
nvmlGpuInstanceCreateComputeInstanceWithPlacement:
	adrp x16, velocpy_nvml_table+2416
	ldr x16, [x16, :lo12:velocpy_nvml_table+2416]
	br x16
	.size nvmlGpuInstanceCreateComputeInstanceWithPlacement, .-nvmlGpuInstanceCreateComputeInstanceWithPlacement
	.globl nvmlGpuInstanceDestroy
	.hidden nvmlGpuInstanceDestroy
	.type nvmlGpuInstanceDestroy, %function
nvmlGpuInstanceDestroy:
	adrp x16, velocpy_nvml_table+2424
	ldr x16, [x16, :lo12:velocpy_nvml_table+2424]
	br x16
	.size nvmlGpuInstanceDestroy, .-nvmlGpuInstanceDestroy
	.globl nvmlGpuInstanceGetActiveVgpus
	.hidden nvmlGpuInstanceGetActiveVgpus
	.type nvmlGpuInstanceGetActiveVgpus, %function
nvmlGpuInstanceGetActiveVgpus:
	adrp x16, velocpy_nvml_table+2432
	ldr x16, [x16, :lo12:velocpy_nvml_table+2432]
	br x16
	.size nvmlGpuInstanceGetActiveVgpus, .-nvmlGpuInstanceGetActiveVgpus
	.globl nvmlGpuInstanceGetComputeInstanceById
	.hidden nvmlGpuInstanceGetComputeInstanceById
	.type nvmlGpuInstanceGetComputeInstanceById, %function
nvmlGpuInstanceGetComputeInstanceById:
	adrp x16, velocpy_nvml_table+2440
	ldr x16, [x16, :lo12:velocpy_nvml_table+2440]
	br x16
	.size nvmlGpuInstanceGetComputeInstanceById, .-nvmlGpuInstanceGetComputeInstanceById
	.globl nvmlGpuInstanceGetComputeInstancePossiblePlacements
	.hidden nvmlGpuInstanceGetComputeInstancePossiblePlacements
	.type nvmlGpuInstanceGetComputeInstancePossiblePlacements, %function
nvmlGpuInstanceGetComputeInstancePossiblePlacements:
	adrp x16, velocpy_nvml_table+2448
	ldr x16, [x16, :lo12:velocpy_nvml_table+2448]
	br x16
	.size nvmlGpuInstanceGetComputeInstancePossiblePlacements, .-nvmlGpuInstanceGetComputeInstancePossiblePlacements
	.globl nvmlGpuInstanceGetComputeInstanceProfileInfo
	.hidden nvmlGpuInstanceGetComputeInstanceProfileInfo
	.type nvmlGpuInstanceGetComputeInstanceProfileInfo, %function
nvmlGpuInstanceGetComputeInstanceProfileInfo:
	adrp x16, velocpy_nvml_table+2456
	ldr x16, [x16, :lo12:velocpy_nvml_table+2456]
	br x16
	.size nvmlGpuInstanceGetComputeInstanceProfileInfo, .-nvmlGpuInstanceGetComputeInstanceProfileInfo
	.globl nvmlGpuInstanceGetComputeInstanceProfileInfoV
	.hidden nvmlGpuInstanceGetComputeInstanceProfileInfoV
	.type nvmlGpuInstanceGetComputeInstanceProfileInfoV, %function
nvmlGpuInstanceGetComputeInstanceProfileInfoV:
	adrp x16, velocpy_nvml_table+2464
	ldr x16, [x16, :lo12:velocpy_nvml_table+2464]
	br x16
	.size nvmlGpuInstanceGetComputeInstanceProfileInfoV, .-nvmlGpuInstanceGetComputeInstanceProfileInfoV
	.globl nvmlGpuInstanceGetComputeInstanceRemainingCapacity
	.hidden nvmlGpuInstanceGetComputeInstanceRemainingCapacity
	.type nvmlGpuInstanceGetComputeInstanceRemainingCapacity, %function
nvmlGpuInstanceGetComputeInstanceRemainingCapacity:
	adrp x16, velocpy_nvml_table+2472
	ldr x16, [x16, :lo12:velocpy_nvml_table+2472]
	br x16
	.size nvmlGpuInstanceGetComputeInstanceRemainingCapacity, .-nvmlGpuInstanceGetComputeInstanceRemainingCapacity
	.globl nvmlGpuInstanceGetComputeInstances
	.hidden nvmlGpuInstanceGetComputeInstances
	.type nvmlGpuInstanceGetComputeInstances, %function
nvmlGpuInstanceGetComputeInstances:
	adrp x16, velocpy_nvml_table+2480
	ldr x16, [x16, :lo12:velocpy_nvml_table+2480]
	br x16
	.size nvmlGpuInstanceGetComputeInstances, .-nvmlGpuInstanceGetComputeInstances
	.globl nvmlGpuInstanceGetCreatableVgpus
	.hidden nvmlGpuInstanceGetCreatableVgpus
	.type nvmlGpuInstanceGetCreatableVgpus, %function
nvmlGpuInstanceGetCreatableVgpus:
	adrp x16, velocpy_nvml_table+2488
	ldr x16, [x16, :lo12:velocpy_nvml_table+2488]
	br x16
	.size nvmlGpuInstanceGetCreatableVgpus, .-nvmlGpuInstanceGetCreatableVgpus
	.globl nvmlGpuInstanceGetInfo
	.hidden nvmlGpuInstanceGetInfo
	.type nvmlGpuInstanceGetInfo, %function
nvmlGpuInstanceGetInfo:
	adrp x16, velocpy_nvml_table+2496
	ldr x16, [x16, :lo12:velocpy_nvml_table+2496]
	br x16
	.size nvmlGpuInstanceGetInfo, .-nvmlGpuInstanceGetInfo
	.globl nvmlGpuInstanceGetVgpuHeterogeneousMode
	.hidden nvmlGpuInstanceGetVgpuHeterogeneousMode
	.type nvmlGpuInstanceGetVgpuHeterogeneousMode, %function
nvmlGpuInstanceGetVgpuHeterogeneousMode:
	adrp x16, velocpy_nvml_table+2504
	ldr x16, [x16, :lo12:velocpy_nvml_table+2504]
	br x16
	.size nvmlGpuInstanceGetVgpuHeterogeneousMode, .-nvmlGpuInstanceGetVgpuHeterogeneousMode
	.globl nvmlGpuInstanceGetVgpuSchedulerLog
	.hidden nvmlGpuInstanceGetVgpuSchedulerLog
	.type nvmlGpuInstanceGetVgpuSchedulerLog, %function
nvmlGpuInstanceGetVgpuSchedulerLog:
	adrp x16, velocpy_nvml_table+2512
	ldr x16, [x16, :lo12:velocpy_nvml_table+2512]
	br x16
	.size nvmlGpuInstanceGetVgpuSchedulerLog, .-nvmlGpuInstanceGetVgpuSchedulerLog
	.globl nvmlGpuInstanceGetVgpuSchedulerState
	.hidden nvmlGpuInstanceGetVgpuSchedulerState
	.type nvmlGpuInstanceGetVgpuSchedulerState, %function
nvmlGpuInstanceGetVgpuSchedulerState:
	adrp x16, velocpy_nvml_table+2520
	ldr x16, [x16, :lo12:velocpy_nvml_table+2520]
	br x16
	.size nvmlGpuInstanceGetVgpuSchedulerState, .-nvmlGpuInstanceGetVgpuSchedulerState
	.globl nvmlGpuInstanceGetVgpuTypeCreatablePlacements
	.hidden nvmlGpuInstanceGetVgpuTypeCreatablePlacements
	.type nvmlGpuInstanceGetVgpuTypeCreatablePlacements, %function
nvmlGpuInstanceGetVgpuTypeCreatablePlacements:
	adrp x16, velocpy_nvml_table+2528
	ldr x16, [x16, :lo12:velocpy_nvml_table+2528]
	br x16
	.size nvmlGpuInstanceGetVgpuTypeCreatablePlacements, .-nvmlGpuInstanceGetVgpuTypeCreatablePlacements
	.globl nvmlGpuInstanceSetVgpuHeterogeneousMode
	.hidden nvmlGpuInstanceSetVgpuHeterogeneousMode
	.type nvmlGpuInstanceSetVgpuHeterogeneousMode, %function
nvmlGpuInstanceSetVgpuHeterogeneousMode:
	adrp x16, velocpy_nvml_table+2536
	ldr x16, [x16, :lo12:velocpy_nvml_table+2536]
	br x16
	.size nvmlGpuInstanceSetVgpuHeterogeneousMode, .-nvmlGpuInstanceSetVgpuHeterogeneousMode
	.globl nvmlGpuInstanceSetVgpuSchedulerState
	.hidden nvmlGpuInstanceSetVgpuSchedulerState
	.type nvmlGpuInstanceSetVgpuSchedulerState, %function
nvmlGpuInstanceSetVgpuSchedulerState:
	adrp x16, velocpy_nvml_table+2544
	ldr x16, [x16, :lo12:velocpy_nvml_table+2544]
	br x16
	.size nvmlGpuInstanceSetVgpuSchedulerState, .-nvmlGpuInstanceSetVgpuSchedulerState
	.globl nvmlInit
	.hidden nvmlInit
	.type nvmlInit, %function
nvmlInit:
	adrp x16, velocpy_nvml_table+2552
	ldr x16, [x16, :lo12:velocpy_nvml_table+2552]
	br x16
	.size nvmlInit, .-nvmlInit
	.globl nvmlInitWithFlags
	.hidden nvmlInitWithFlags
	.type nvmlInitWithFlags, %function
nvmlInitWithFlags:
	adrp x16, velocpy_nvml_table+2560
	ldr x16, [x16, :lo12:velocpy_nvml_table+2560]
	br x16
	.size nvmlInitWithFlags, .-nvmlInitWithFlags
	.globl nvmlInit_v2
	.hidden nvmlInit_v2
	.type nvmlInit_v2, %function
nvmlInit_v2:
	adrp x16, velocpy_nvml_table+2568
	ldr x16, [x16, :lo12:velocpy_nvml_table+2568]
	br x16
	.size nvmlInit_v2, .-nvmlInit_v2
	.globl nvmlSetVgpuVersion
	.hidden nvmlSetVgpuVersion
	.type nvmlSetVgpuVersion, %function
nvmlSetVgpuVersion:
	adrp x16, velocpy_nvml_table+2576
	ldr x16, [x16, :lo12:velocpy_nvml_table+2576]
	br x16
	.size nvmlSetVgpuVersion, .-nvmlSetVgpuVersion
	.globl nvmlShutdown
	.hidden nvmlShutdown
	.type nvmlShutdown, %function
nvmlShutdown:
	adrp x16, velocpy_nvml_table+2584
	ldr x16, [x16, :lo12:velocpy_nvml_table+2584]
	br x16
	.size nvmlShutdown, .-nvmlShutdown
	.globl nvmlSystemEventSetCreate
	.hidden nvmlSystemEventSetCreate
	.type nvmlSystemEventSetCreate, %function
nvmlSystemEventSetCreate:
	adrp x16, velocpy_nvml_table+2592
	ldr x16, [x16, :lo12:velocpy_nvml_table+2592]
	br x16
	.size nvmlSystemEventSetCreate, .-nvmlSystemEventSetCreate
	.globl nvmlSystemEventSetFree
	.hidden nvmlSystemEventSetFree
	.type nvmlSystemEventSetFree, %function
nvmlSystemEventSetFree:
	adrp x16, velocpy_nvml_table+2600
	ldr x16, [x16, :lo12:velocpy_nvml_table+2600]
	br x16
	.size nvmlSystemEventSetFree, .-nvmlSystemEventSetFree
	.globl nvmlSystemEventSetWait
	.hidden nvmlSystemEventSetWait
	.type nvmlSystemEventSetWait, %function
nvmlSystemEventSetWait:
	adrp x16, velocpy_nvml_table+2608
	ldr x16, [x16, :lo12:velocpy_nvml_table+2608]
	br x16
	.size nvmlSystemEventSetWait, .-nvmlSystemEventSetWait
	.globl nvmlSystemGetConfComputeCapabilities
	.hidden nvmlSystemGetConfComputeCapabilities
	.type nvmlSystemGetConfComputeCapabilities, %function
nvmlSystemGetConfComputeCapabilities:
	adrp x16, velocpy_nvml_table+2616
	ldr x16, [x16, :lo12:velocpy_nvml_table+2616]
	br x16
	.size nvmlSystemGetConfComputeCapabilities, .-nvmlSystemGetConfComputeCapabilities
	.globl nvmlSystemGetConfComputeGpusReadyState
	.hidden nvmlSystemGetConfComputeGpusReadyState
	.type nvmlSystemGetConfComputeGpusReadyState, %function
nvmlSystemGetConfComputeGpusReadyState:
	adrp x16, velocpy_nvml_table+2624
	ldr x16, [x16, :lo12:velocpy_nvml_table+2624]
	br x16
	.size nvmlSystemGetConfComputeGpusReadyState, .-nvmlSystemGetConfComputeGpusReadyState
	.globl nvmlSystemGetConfComputeKeyRotationThresholdInfo
	.hidden nvmlSystemGetConfComputeKeyRotationThresholdInfo
	.type nvmlSystemGetConfComputeKeyRotationThresholdInfo, %function
nvmlSystemGetConfComputeKeyRotationThresholdInfo:
	adrp x16, velocpy_nvml_table+2632
	ldr x16, [x16, :lo12:velocpy_nvml_table+2632]
	br x16
	.size nvmlSystemGetConfComputeKeyRotationThresholdInfo, .-nvmlSystemGetConfComputeKeyRotationThresholdInfo
	.globl nvmlSystemGetConfComputeSettings
	.hidden nvmlSystemGetConfComputeSettings
	.type nvmlSystemGetConfComputeSettings, %function
nvmlSystemGetConfComputeSettings:
	adrp x16, velocpy_nvml_table+2640
	ldr x16, [x16, :lo12:velocpy_nvml_table+2640]
	br x16
	.size nvmlSystemGetConfComputeSettings, .-nvmlSystemGetConfComputeSettings
	.globl nvmlSystemGetConfComputeState
	.hidden nvmlSystemGetConfComputeState
	.type nvmlSystemGetConfComputeState, %function
nvmlSystemGetConfComputeState:
	adrp x16, velocpy_nvml_table+2648
	ldr x16, [x16, :lo12:velocpy_nvml_table+2648]
	br x16
	.size nvmlSystemGetConfComputeState, .-nvmlSystemGetConfComputeState
	.globl nvmlSystemGetCudaDriverVersion
	.hidden nvmlSystemGetCudaDriverVersion
	.type nvmlSystemGetCudaDriverVersion, %function
nvmlSystemGetCudaDriverVersion:
	adrp x16, velocpy_nvml_table+2656
	ldr x16, [x16, :lo12:velocpy_nvml_table+2656]
	br x16
	.size nvmlSystemGetCudaDriverVersion, .-nvmlSystemGetCudaDriverVersion
	.globl nvmlSystemGetCudaDriverVersion_v2
	.hidden nvmlSystemGetCudaDriverVersion_v2
	.type nvmlSystemGetCudaDriverVersion_v2, %function
nvmlSystemGetCudaDriverVersion_v2:
	adrp x16, velocpy_nvml_table+2664
	ldr x16, [x16, :lo12:velocpy_nvml_table+2664]
	br x16
	.size nvmlSystemGetCudaDriverVersion_v2, .-nvmlSystemGetCudaDriverVersion_v2
	.globl nvmlSystemGetDriverBranch
	.hidden nvmlSystemGetDriverBranch
	.type nvmlSystemGetDriverBranch, %function
nvmlSystemGetDriverBranch:
	adrp x16, velocpy_nvml_table+2672
	ldr x16, [x16, :lo12:velocpy_nvml_table+2672]
	br x16
	.size nvmlSystemGetDriverBranch, .-nvmlSystemGetDriverBranch
	.globl nvmlSystemGetDriverVersion
	.hidden nvmlSystemGetDriverVersion
	.type nvmlSystemGetDriverVersion, %function
nvmlSystemGetDriverVersion:
	adrp x16, velocpy_nvml_table+2680
	ldr x16, [x16, :lo12:velocpy_nvml_table+2680]
	br x16
	.size nvmlSystemGetDriverVersion, .-nvmlSystemGetDriverVersion
	.globl nvmlSystemGetHicVersion
	.hidden nvmlSystemGetHicVersion
	.type nvmlSystemGetHicVersion, %function
nvmlSystemGetHicVersion:
	adrp x16, velocpy_nvml_table+2688
	ldr x16, [x16, :lo12:velocpy_nvml_table+2688]
	br x16
	.size nvmlSystemGetHicVersion, .-nvmlSystemGetHicVersion
	.globl nvmlSystemGetNVMLVersion
	.hidden nvmlSystemGetNVMLVersion
	.type nvmlSystemGetNVMLVersion, %function
nvmlSystemGetNVMLVersion:
	adrp x16, velocpy_nvml_table+2696
	ldr x16, [x16, :lo12:velocpy_nvml_table+2696]
	br x16
	.size nvmlSystemGetNVMLVersion, .-nvmlSystemGetNVMLVersion
	.globl nvmlSystemGetNvlinkBwMode
	.hidden nvmlSystemGetNvlinkBwMode
	.type nvmlSystemGetNvlinkBwMode, %function
nvmlSystemGetNvlinkBwMode:
	adrp x16, velocpy_nvml_table+2704
	ldr x16, [x16, :lo12:velocpy_nvml_table+2704]
	br x16
	.size nvmlSystemGetNvlinkBwMode, .-nvmlSystemGetNvlinkBwMode
	.globl nvmlSystemGetProcessName
	.hidden nvmlSystemGetProcessName
	.type nvmlSystemGetProcessName, %function
nvmlSystemGetProcessName:
	adrp x16, velocpy_nvml_table+2712
	ldr x16, [x16, :lo12:velocpy_nvml_table+2712]
	br x16
	.size nvmlSystemGetProcessName, .-nvmlSystemGetProcessName
	.globl nvmlSystemGetTopologyGpuSet
	.hidden nvmlSystemGetTopologyGpuSet
	.type nvmlSystemGetTopologyGpuSet, %function
nvmlSystemGetTopologyGpuSet:
	adrp x16, velocpy_nvml_table+2720
	ldr x16, [x16, :lo12:velocpy_nvml_table+2720]
	br x16
	.size nvmlSystemGetTopologyGpuSet, .-nvmlSystemGetTopologyGpuSet
	.globl nvmlSystemRegisterEvents
	.hidden nvmlSystemRegisterEvents
	.type nvmlSystemRegisterEvents, %function
nvmlSystemRegisterEvents:
	adrp x16, velocpy_nvml_table+2728
	ldr x16, [x16, :lo12:velocpy_nvml_table+2728]
	br x16
	.size nvmlSystemRegisterEvents, .-nvmlSystemRegisterEvents
	.globl nvmlSystemSetConfComputeGpusReadyState
	.hidden nvmlSystemSetConfComputeGpusReadyState
	.type nvmlSystemSetConfComputeGpusReadyState, %function
nvmlSystemSetConfComputeGpusReadyState:
	adrp x16, velocpy_nvml_table+2736
	ldr x16, [x16, :lo12:velocpy_nvml_table+2736]
	br x16
	.size nvmlSystemSetConfComputeGpusReadyState, .-nvmlSystemSetConfComputeGpusReadyState
	.globl nvmlSystemSetConfComputeKeyRotationThresholdInfo
	.hidden nvmlSystemSetConfComputeKeyRotationThresholdInfo
	.type nvmlSystemSetConfComputeKeyRotationThresholdInfo, %function
nvmlSystemSetConfComputeKeyRotationThresholdInfo:
	adrp x16, velocpy_nvml_table+2744
	ldr x16, [x16, :lo12:velocpy_nvml_table+2744]
	br x16
	.size nvmlSystemSetConfComputeKeyRotationThresholdInfo, .-nvmlSystemSetConfComputeKeyRotationThresholdInfo
	.globl nvmlSystemSetNvlinkBwMode
	.hidden nvmlSystemSetNvlinkBwMode
	.type nvmlSystemSetNvlinkBwMode, %function
nvmlSystemSetNvlinkBwMode:
	adrp x16, velocpy_nvml_table+2752
	ldr x16, [x16, :lo12:velocpy_nvml_table+2752]
	br x16
	.size nvmlSystemSetNvlinkBwMode, .-nvmlSystemSetNvlinkBwMode
	.globl nvmlUnitGetCount
	.hidden nvmlUnitGetCount
	.type nvmlUnitGetCount, %function
nvmlUnitGetCount:
	adrp x16, velocpy_nvml_table+2760
	ldr x16, [x16, :lo12:velocpy_nvml_table+2760]
	br x16
	.size nvmlUnitGetCount, .-nvmlUnitGetCount
	.globl nvmlUnitGetDevices
	.hidden nvmlUnitGetDevices
	.type nvmlUnitGetDevices, %function
nvmlUnitGetDevices:
	adrp x16, velocpy_nvml_table+2768
	ldr x16, [x16, :lo12:velocpy_nvml_table+2768]
	br x16
	.size nvmlUnitGetDevices, .-nvmlUnitGetDevices
	.globl nvmlUnitGetFanSpeedInfo
	.hidden nvmlUnitGetFanSpeedInfo
	.type nvmlUnitGetFanSpeedInfo, %function
nvmlUnitGetFanSpeedInfo:
	adrp x16, velocpy_nvml_table+2776
	ldr x16, [x16, :lo12:velocpy_nvml_table+2776]
	br x16
	.size nvmlUnitGetFanSpeedInfo, .-nvmlUnitGetFanSpeedInfo
	.globl nvmlUnitGetHandleByIndex
	.hidden nvmlUnitGetHandleByIndex
	.type nvmlUnitGetHandleByIndex, %function
nvmlUnitGetHandleByIndex:
	adrp x16, velocpy_nvml_table+2784
	ldr x16, [x16, :lo12:velocpy_nvml_table+2784]
	br x16
	.size nvmlUnitGetHandleByIndex, .-nvmlUnitGetHandleByIndex
	.globl nvmlUnitGetLedState
	.hidden nvmlUnitGetLedState
	.type nvmlUnitGetLedState, %function
nvmlUnitGetLedState:
	adrp x16, velocpy_nvml_table+2792
	ldr x16, [x16, :lo12:velocpy_nvml_table+2792]
	br x16
	.size nvmlUnitGetLedState, .-nvmlUnitGetLedState
	.globl nvmlUnitGetPsuInfo
	.hidden nvmlUnitGetPsuInfo
	.type nvmlUnitGetPsuInfo, %function
nvmlUnitGetPsuInfo:
	adrp x16, velocpy_nvml_table+2800
	ldr x16, [x16, :lo12:velocpy_nvml_table+2800]
	br x16
	.size nvmlUnitGetPsuInfo, .-nvmlUnitGetPsuInfo
	.globl nvmlUnitGetTemperature
	.hidden nvmlUnitGetTemperature
	.type nvmlUnitGetTemperature, %function
nvmlUnitGetTemperature:
	adrp x16, velocpy_nvml_table+2808
	ldr x16, [x16, :lo12:velocpy_nvml_table+2808]
	br x16
	.size nvmlUnitGetTemperature, .-nvmlUnitGetTemperature
	.globl nvmlUnitGetUnitInfo
	.hidden nvmlUnitGetUnitInfo
	.type nvmlUnitGetUnitInfo, %function
nvmlUnitGetUnitInfo:
	adrp x16, velocpy_nvml_table+2816
	ldr x16, [x16, :lo12:velocpy_nvml_table+2816]
	br x16
	.size nvmlUnitGetUnitInfo, .-nvmlUnitGetUnitInfo
	.globl nvmlUnitSetLedState
	.hidden nvmlUnitSetLedState
	.type nvmlUnitSetLedState, %function
nvmlUnitSetLedState:
	adrp x16, velocpy_nvml_table+2824
	ldr x16, [x16, :lo12:velocpy_nvml_table+2824]
	br x16
	.size nvmlUnitSetLedState, .-nvmlUnitSetLedState
	.globl nvmlVgpuInstanceClearAccountingPids
	.hidden nvmlVgpuInstanceClearAccountingPids
	.type nvmlVgpuInstanceClearAccountingPids, %function
nvmlVgpuInstanceClearAccountingPids:
	adrp x16, velocpy_nvml_table+2832
	ldr x16, [x16, :lo12:velocpy_nvml_table+2832]
	br x16
	.size nvmlVgpuInstanceClearAccountingPids, .-nvmlVgpuInstanceClearAccountingPids
	.globl nvmlVgpuInstanceGetAccountingMode
	.hidden nvmlVgpuInstanceGetAccountingMode
	.type nvmlVgpuInstanceGetAccountingMode, %function
nvmlVgpuInstanceGetAccountingMode:
	adrp x16, velocpy_nvml_table+2840
	ldr x16, [x16, :lo12:velocpy_nvml_table+2840]
	br x16
	.size nvmlVgpuInstanceGetAccountingMode, .-nvmlVgpuInstanceGetAccountingMode
	.globl nvmlVgpuInstanceGetAccountingPids
	.hidden nvmlVgpuInstanceGetAccountingPids
	.type nvmlVgpuInstanceGetAccountingPids, %function
nvmlVgpuInstanceGetAccountingPids:
	adrp x16, velocpy_nvml_table+2848
	ldr x16, [x16, :lo12:velocpy_nvml_table+2848]
	br x16
	.size nvmlVgpuInstanceGetAccountingPids, .-nvmlVgpuInstanceGetAccountingPids
	.globl nvmlVgpuInstanceGetAccountingStats
	.hidden nvmlVgpuInstanceGetAccountingStats
	.type nvmlVgpuInstanceGetAccountingStats, %function
nvmlVgpuInstanceGetAccountingStats:
	adrp x16, velocpy_nvml_table+2856
	ldr x16, [x16, :lo12:velocpy_nvml_table+2856]
	br x16
	.size nvmlVgpuInstanceGetAccountingStats, .-nvmlVgpuInstanceGetAccountingStats
	.globl nvmlVgpuInstanceGetEccMode
	.hidden nvmlVgpuInstanceGetEccMode
	.type nvmlVgpuInstanceGetEccMode, %function
nvmlVgpuInstanceGetEccMode:
	adrp x16, velocpy_nvml_table+2864
	ldr x16, [x16, :lo12:velocpy_nvml_table+2864]
	br x16
	.size nvmlVgpuInstanceGetEccMode, .-nvmlVgpuInstanceGetEccMode
	.globl nvmlVgpuInstanceGetEncoderCapacity
	.hidden nvmlVgpuInstanceGetEncoderCapacity
	.type nvmlVgpuInstanceGetEncoderCapacity, %function
nvmlVgpuInstanceGetEncoderCapacity:
	adrp x16, velocpy_nvml_table+2872
	ldr x16, [x16, :lo12:velocpy_nvml_table+2872]
	br x16
	.size nvmlVgpuInstanceGetEncoderCapacity, .-nvmlVgpuInstanceGetEncoderCapacity
	.globl nvmlVgpuInstanceGetEncoderSessions
	.hidden nvmlVgpuInstanceGetEncoderSessions
	.type nvmlVgpuInstanceGetEncoderSessions, %function
nvmlVgpuInstanceGetEncoderSessions:
	adrp x16, velocpy_nvml_table+2880
	ldr x16, [x16, :lo12:velocpy_nvml_table+2880]
	br x16
	.size nvmlVgpuInstanceGetEncoderSessions, .-nvmlVgpuInstanceGetEncoderSessions
	.globl nvmlVgpuInstanceGetEncoderStats
	.hidden nvmlVgpuInstanceGetEncoderStats
	.type nvmlVgpuInstanceGetEncoderStats, %function
nvmlVgpuInstanceGetEncoderStats:
	adrp x16, velocpy_nvml_table+2888
	ldr x16, [x16, :lo12:velocpy_nvml_table+2888]
	br x16
	.size nvmlVgpuInstanceGetEncoderStats, .-nvmlVgpuInstanceGetEncoderStats
	.globl nvmlVgpuInstanceGetFBCSessions
	.hidden nvmlVgpuInstanceGetFBCSessions
	.type nvmlVgpuInstanceGetFBCSessions, %function
nvmlVgpuInstanceGetFBCSessions:
	adrp x16, velocpy_nvml_table+2896
	ldr x16, [x16, :lo12:velocpy_nvml_table+2896]
	br x16
	.size nvmlVgpuInstanceGetFBCSessions, .-nvmlVgpuInstanceGetFBCSessions
	.globl nvmlVgpuInstanceGetFBCStats
	.hidden nvmlVgpuInstanceGetFBCStats
	.type nvmlVgpuInstanceGetFBCStats, %function
nvmlVgpuInstanceGetFBCStats:
	adrp x16, velocpy_nvml_table+2904
	ldr x16, [x16, :lo12:velocpy_nvml_table+2904]
	br x16
	.size nvmlVgpuInstanceGetFBCStats, .-nvmlVgpuInstanceGetFBCStats
	.globl nvmlVgpuInstanceGetFbUsage
	.hidden nvmlVgpuInstanceGetFbUsage
	.type nvmlVgpuInstanceGetFbUsage, %function
nvmlVgpuInstanceGetFbUsage:
	adrp x16, velocpy_nvml_table+2912
	ldr x16, [x16, :lo12:velocpy_nvml_table+2912]
	br x16
	.size nvmlVgpuInstanceGetFbUsage, .-nvmlVgpuInstanceGetFbUsage
	.globl nvmlVgpuInstanceGetFrameRateLimit
	.hidden nvmlVgpuInstanceGetFrameRateLimit
	.type nvmlVgpuInstanceGetFrameRateLimit, %function
nvmlVgpuInstanceGetFrameRateLimit:
	adrp x16, velocpy_nvml_table+2920
	ldr x16, [x16, :lo12:velocpy_nvml_table+2920]
	br x16
	.size nvmlVgpuInstanceGetFrameRateLimit, .-nvmlVgpuInstanceGetFrameRateLimit
	.globl nvmlVgpuInstanceGetGpuInstanceId
	.hidden nvmlVgpuInstanceGetGpuInstanceId
	.type nvmlVgpuInstanceGetGpuInstanceId, %function
nvmlVgpuInstanceGetGpuInstanceId:
	adrp x16, velocpy_nvml_table+2928
	ldr x16, [x16, :lo12:velocpy_nvml_table+2928]
	br x16
	.size nvmlVgpuInstanceGetGpuInstanceId, .-nvmlVgpuInstanceGetGpuInstanceId
	.globl nvmlVgpuInstanceGetGpuPciId
	.hidden nvmlVgpuInstanceGetGpuPciId
	.type nvmlVgpuInstanceGetGpuPciId, %function
nvmlVgpuInstanceGetGpuPciId:
	adrp x16, velocpy_nvml_table+2936
	ldr x16, [x16, :lo12:velocpy_nvml_table+2936]
	br x16
	.size nvmlVgpuInstanceGetGpuPciId, .-nvmlVgpuInstanceGetGpuPciId
	.globl nvmlVgpuInstanceGetLicenseInfo
	.hidden nvmlVgpuInstanceGetLicenseInfo
	.type nvmlVgpuInstanceGetLicenseInfo, %function
nvmlVgpuInstanceGetLicenseInfo:
	adrp x16, velocpy_nvml_table+2944
	ldr x16, [x16, :lo12:velocpy_nvml_table+2944]
	br x16
	.size nvmlVgpuInstanceGetLicenseInfo, .-nvmlVgpuInstanceGetLicenseInfo
	.globl nvmlVgpuInstanceGetLicenseInfo_v2
	.hidden nvmlVgpuInstanceGetLicenseInfo_v2
	.type nvmlVgpuInstanceGetLicenseInfo_v2, %function
nvmlVgpuInstanceGetLicenseInfo_v2:
	adrp x16, velocpy_nvml_table+2952
	ldr x16, [x16, :lo12:velocpy_nvml_table+2952]
	br x16
	.size nvmlVgpuInstanceGetLicenseInfo_v2, .-nvmlVgpuInstanceGetLicenseInfo_v2
	.globl nvmlVgpuInstanceGetLicenseStatus
	.hidden nvmlVgpuInstanceGetLicenseStatus
	.type nvmlVgpuInstanceGetLicenseStatus, %function
nvmlVgpuInstanceGetLicenseStatus:
	adrp x16, velocpy_nvml_table+2960
	ldr x16, [x16, :lo12:velocpy_nvml_table+2960]
	br x16
	.size nvmlVgpuInstanceGetLicenseStatus, .-nvmlVgpuInstanceGetLicenseStatus
	.globl nvmlVgpuInstanceGetMdevUUID
	.hidden nvmlVgpuInstanceGetMdevUUID
	.type nvmlVgpuInstanceGetMdevUUID, %function
nvmlVgpuInstanceGetMdevUUID:
	adrp x16, velocpy_nvml_table+2968
	ldr x16, [x16, :lo12:velocpy_nvml_table+2968]
	br x16
	.size nvmlVgpuInstanceGetMdevUUID, .-nvmlVgpuInstanceGetMdevUUID
	.globl nvmlVgpuInstanceGetMetadata
	.hidden nvmlVgpuInstanceGetMetadata
	.type nvmlVgpuInstanceGetMetadata, %function
nvmlVgpuInstanceGetMetadata:
	adrp x16, velocpy_nvml_table+2976
	ldr x16, [x16, :lo12:velocpy_nvml_table+2976]
	br x16
	.size nvmlVgpuInstanceGetMetadata, .-nvmlVgpuInstanceGetMetadata
	.globl nvmlVgpuInstanceGetPlacementId
	.hidden nvmlVgpuInstanceGetPlacementId
	.type nvmlVgpuInstanceGetPlacementId, %function
nvmlVgpuInstanceGetPlacementId:
	adrp x16, velocpy_nvml_table+2984
	ldr x16, [x16, :lo12:velocpy_nvml_table+2984]
	br x16
	.size nvmlVgpuInstanceGetPlacementId, .-nvmlVgpuInstanceGetPlacementId
	.globl nvmlVgpuInstanceGetRuntimeStateSize
	.hidden nvmlVgpuInstanceGetRuntimeStateSize
	.type nvmlVgpuInstanceGetRuntimeStateSize, %function
nvmlVgpuInstanceGetRuntimeStateSize:
	adrp x16, velocpy_nvml_table+2992
	ldr x16, [x16, :lo12:velocpy_nvml_table+2992]
	br x16
	.size nvmlVgpuInstanceGetRuntimeStateSize, .-nvmlVgpuInstanceGetRuntimeStateSize
	.globl nvmlVgpuInstanceGetType
	.hidden nvmlVgpuInstanceGetType
	.type nvmlVgpuInstanceGetType, %function
nvmlVgpuInstanceGetType:
	adrp x16, velocpy_nvml_table+3000
	ldr x16, [x16, :lo12:velocpy_nvml_table+3000]
	br x16
	.size nvmlVgpuInstanceGetType, .-nvmlVgpuInstanceGetType
	.globl nvmlVgpuInstanceGetUUID
	.hidden nvmlVgpuInstanceGetUUID
	.type nvmlVgpuInstanceGetUUID, %function
nvmlVgpuInstanceGetUUID:
	adrp x16, velocpy_nvml_table+3008
	ldr x16, [x16, :lo12:velocpy_nvml_table+3008]
	br x16
	.size nvmlVgpuInstanceGetUUID, .-nvmlVgpuInstanceGetUUID
	.globl nvmlVgpuInstanceGetVmDriverVersion
	.hidden nvmlVgpuInstanceGetVmDriverVersion
	.type nvmlVgpuInstanceGetVmDriverVersion, %function
nvmlVgpuInstanceGetVmDriverVersion:
	adrp x16, velocpy_nvml_table+3016
	ldr x16, [x16, :lo12:velocpy_nvml_table+3016]
	br x16
	.size nvmlVgpuInstanceGetVmDriverVersion, .-nvmlVgpuInstanceGetVmDriverVersion
	.globl nvmlVgpuInstanceGetVmID
	.hidden nvmlVgpuInstanceGetVmID
	.type nvmlVgpuInstanceGetVmID, %function
nvmlVgpuInstanceGetVmID:
	adrp x16, velocpy_nvml_table+3024
	ldr x16, [x16, :lo12:velocpy_nvml_table+3024]
	br x16
	.size nvmlVgpuInstanceGetVmID, .-nvmlVgpuInstanceGetVmID
	.globl nvmlVgpuInstanceSetEncoderCapacity
	.hidden nvmlVgpuInstanceSetEncoderCapacity
	.type nvmlVgpuInstanceSetEncoderCapacity, %function
nvmlVgpuInstanceSetEncoderCapacity:
	adrp x16, velocpy_nvml_table+3032
	ldr x16, [x16, :lo12:velocpy_nvml_table+3032]
	br x16
	.size nvmlVgpuInstanceSetEncoderCapacity, .-nvmlVgpuInstanceSetEncoderCapacity
	.globl nvmlVgpuTypeGetBAR1Info
	.hidden nvmlVgpuTypeGetBAR1Info
	.type nvmlVgpuTypeGetBAR1Info, %function
nvmlVgpuTypeGetBAR1Info:
	adrp x16, velocpy_nvml_table+3040
	ldr x16, [x16, :lo12:velocpy_nvml_table+3040]
	br x16
	.size nvmlVgpuTypeGetBAR1Info, .-nvmlVgpuTypeGetBAR1Info
	.globl nvmlVgpuTypeGetCapabilities
	.hidden nvmlVgpuTypeGetCapabilities
	.type nvmlVgpuTypeGetCapabilities, %function
nvmlVgpuTypeGetCapabilities:
	adrp x16, velocpy_nvml_table+3048
	ldr x16, [x16, :lo12:velocpy_nvml_table+3048]
	br x16
	.size nvmlVgpuTypeGetCapabilities, .-nvmlVgpuTypeGetCapabilities
	.globl nvmlVgpuTypeGetClass
	.hidden nvmlVgpuTypeGetClass
	.type nvmlVgpuTypeGetClass, %function
nvmlVgpuTypeGetClass:
	adrp x16, velocpy_nvml_table+3056
	ldr x16, [x16, :lo12:velocpy_nvml_table+3056]
	br x16
	.size nvmlVgpuTypeGetClass, .-nvmlVgpuTypeGetClass
	.globl nvmlVgpuTypeGetDeviceID
	.hidden nvmlVgpuTypeGetDeviceID
	.type nvmlVgpuTypeGetDeviceID, %function
nvmlVgpuTypeGetDeviceID:
	adrp x16, velocpy_nvml_table+3064
	ldr x16, [x16, :lo12:velocpy_nvml_table+3064]
	br x16
	.size nvmlVgpuTypeGetDeviceID, .-nvmlVgpuTypeGetDeviceID
	.globl nvmlVgpuTypeGetFbReservation
	.hidden nvmlVgpuTypeGetFbReservation
	.type nvmlVgpuTypeGetFbReservation, %function
nvmlVgpuTypeGetFbReservation:
	adrp x16, velocpy_nvml_table+3072
	ldr x16, [x16, :lo12:velocpy_nvml_table+3072]
	br x16
	.size nvmlVgpuTypeGetFbReservation, .-nvmlVgpuTypeGetFbReservation
	.globl nvmlVgpuTypeGetFrameRateLimit
	.hidden nvmlVgpuTypeGetFrameRateLimit
	.type nvmlVgpuTypeGetFrameRateLimit, %function
nvmlVgpuTypeGetFrameRateLimit:
	adrp x16, velocpy_nvml_table+3080
	ldr x16, [x16, :lo12:velocpy_nvml_table+3080]
	br x16
	.size nvmlVgpuTypeGetFrameRateLimit, .-nvmlVgpuTypeGetFrameRateLimit
	.globl nvmlVgpuTypeGetFramebufferSize
	.hidden nvmlVgpuTypeGetFramebufferSize
	.type nvmlVgpuTypeGetFramebufferSize, %function
nvmlVgpuTypeGetFramebufferSize:
	adrp x16, velocpy_nvml_table+3088
	ldr x16, [x16, :lo12:velocpy_nvml_table+3088]
	br x16
	.size nvmlVgpuTypeGetFramebufferSize, .-nvmlVgpuTypeGetFramebufferSize
	.globl nvmlVgpuTypeGetGpuInstanceProfileId
	.hidden nvmlVgpuTypeGetGpuInstanceProfileId
	.type nvmlVgpuTypeGetGpuInstanceProfileId, %function
nvmlVgpuTypeGetGpuInstanceProfileId:
	adrp x16, velocpy_nvml_table+3096
	ldr x16, [x16, :lo12:velocpy_nvml_table+3096]
	br x16
	.size nvmlVgpuTypeGetGpuInstanceProfileId, .-nvmlVgpuTypeGetGpuInstanceProfileId
	.globl nvmlVgpuTypeGetGspHeapSize
	.hidden nvmlVgpuTypeGetGspHeapSize
	.type nvmlVgpuTypeGetGspHeapSize, %function
nvmlVgpuTypeGetGspHeapSize:
	adrp x16, velocpy_nvml_table+3104
	ldr x16, [x16, :lo12:velocpy_nvml_table+3104]
	br x16
	.size nvmlVgpuTypeGetGspHeapSize, .-nvmlVgpuTypeGetGspHeapSize
	.globl nvmlVgpuTypeGetLicense
	.hidden nvmlVgpuTypeGetLicense
	.type nvmlVgpuTypeGetLicense, %function
nvmlVgpuTypeGetLicense:
	adrp x16, velocpy_nvml_table+3112
	ldr x16, [x16, :lo12:velocpy_nvml_table+3112]
	br x16
	.size nvmlVgpuTypeGetLicense, .-nvmlVgpuTypeGetLicense
	.globl nvmlVgpuTypeGetMaxInstances
	.hidden nvmlVgpuTypeGetMaxInstances
	.type nvmlVgpuTypeGetMaxInstances, %function
nvmlVgpuTypeGetMaxInstances:
	adrp x16, velocpy_nvml_table+3120
	ldr x16, [x16, :lo12:velocpy_nvml_table+3120]
	br x16
	.size nvmlVgpuTypeGetMaxInstances, .-nvmlVgpuTypeGetMaxInstances
	.globl nvmlVgpuTypeGetMaxInstancesPerGpuInstance
	.hidden nvmlVgpuTypeGetMaxInstancesPerGpuInstance
	.type nvmlVgpuTypeGetMaxInstancesPerGpuInstance, %function
nvmlVgpuTypeGetMaxInstancesPerGpuInstance:
	adrp x16, velocpy_nvml_table+3128
	ldr x16, [x16, :lo12:velocpy_nvml_table+3128]
	br x16
	.size nvmlVgpuTypeGetMaxInstancesPerGpuInstance, .-nvmlVgpuTypeGetMaxInstancesPerGpuInstance
	.globl nvmlVgpuTypeGetMaxInstancesPerVm
	.hidden nvmlVgpuTypeGetMaxInstancesPerVm
	.type nvmlVgpuTypeGetMaxInstancesPerVm, %function
nvmlVgpuTypeGetMaxInstancesPerVm:
	adrp x16, velocpy_nvml_table+3136
	ldr x16, [x16, :lo12:velocpy_nvml_table+3136]
	br x16
	.size nvmlVgpuTypeGetMaxInstancesPerVm, .-nvmlVgpuTypeGetMaxInstancesPerVm
	.globl nvmlVgpuTypeGetName
	.hidden nvmlVgpuTypeGetName
	.type nvmlVgpuTypeGetName, %function
nvmlVgpuTypeGetName:
	adrp x16, velocpy_nvml_table+3144
	ldr x16, [x16, :lo12:velocpy_nvml_table+3144]
	br x16
	.size nvmlVgpuTypeGetName, .-nvmlVgpuTypeGetName
	.globl nvmlVgpuTypeGetNumDisplayHeads
	.hidden nvmlVgpuTypeGetNumDisplayHeads
	.type nvmlVgpuTypeGetNumDisplayHeads, %function
nvmlVgpuTypeGetNumDisplayHeads:
	adrp x16, velocpy_nvml_table+3152
	ldr x16, [x16, :lo12:velocpy_nvml_table+3152]
	br x16
	.size nvmlVgpuTypeGetNumDisplayHeads, .-nvmlVgpuTypeGetNumDisplayHeads
	.globl nvmlVgpuTypeGetResolution
	.hidden nvmlVgpuTypeGetResolution
	.type nvmlVgpuTypeGetResolution, %function
nvmlVgpuTypeGetResolution:
	adrp x16, velocpy_nvml_table+3160
	ldr x16, [x16, :lo12:velocpy_nvml_table+3160]
	br x16
	.size nvmlVgpuTypeGetResolution, .-nvmlVgpuTypeGetResolution
	.section .note.GNU-stack,"",%progbits
