"""The evaluations of Maurya et al., HPDC'23 and HiPC'22."""
